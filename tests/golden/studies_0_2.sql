PRAGMA application_id = 1852991348;
PRAGMA user_version = 7;
BEGIN TRANSACTION;
CREATE TABLE studies (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	policy TEXT NOT NULL, 
	seed TEXT NOT NULL, 
	about TEXT NOT NULL, 
	format INTEGER NOT NULL, 
	created_at DOUBLE NOT NULL, 
	goal TEXT, 
	events INTEGER, 
	stamp TEXT, 
	trials INTEGER, 
	observed INTEGER, 
	failed INTEGER, 
	abandoned INTEGER, 
	best DOUBLE, 
	last_at DOUBLE, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "studies" VALUES(1,'shop','{"type": "Policy", "algorithm": "auto", "domain": {"type": "Space", "parameters": [["price", {"type": "Float", "low": 1.0, "high": 9.0, "log": false}], ["kind", {"type": "Choice", "options": ["a", "b"]}]]}, "context": null, "kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.5, 0.5], "scale": 1.0}, "groups": [0, 1, 1]}, "noise": 0.1, "regularization": 0.010000000000000002, "prior_mean": 0.0, "memory": {"type": "Forever"}, "explore": {"type": "InitialDesign", "rounds": 10}, "pending": {"type": "Ignored", "failed": "worst"}, "objective": {"type": "RewardAlone"}, "confidence": {"type": "ConstantWidth", "value": 2.0, "delta": 0.1}, "score": {"type": "ExpectedImprovement", "incumbent": "mean", "margin": 0.0}, "search": {"type": "PointSearch", "candidates": 1024, "around": 48, "starts": 3, "evaluations": 20, "mutations": 256, "incumbents": 5, "apart": 0.0001}, "refit": {"type": "Refit", "every": 3, "prior": "hvarfner", "restarts": 2, "outputs": "answered", "standardize": true, "growth": 0.1, "warp": "half-rank", "noise": "unknown"}, "constraints": {"type": "EveryRound", "count": 1, "kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.5, 0.5], "scale": 1.0}, "groups": [0, 1, 1]}, "noise": null, "regularization": null, "prior_mean": 0.0, "confidence": null, "pending": null, "rule": "optimistic"}, "sketch": null, "switching": null}','0','{}',7,1.79542365386845302575e+09,'minimize',28,'e38a7074e3e25f12',14,12,1,1,4.92625984667019938901e-05,1.79542365784393048288e+09);
INSERT INTO "studies" VALUES(2,'changing','{"type": "Policy", "algorithm": "gp_ucb_cpd", "domain": {"type": "Arms", "points": [[0.0], [0.034482758620689655], [0.06896551724137931], [0.10344827586206896], [0.13793103448275862], [0.1724137931034483], [0.20689655172413793], [0.24137931034482757], [0.27586206896551724], [0.3103448275862069], [0.3448275862068966], [0.3793103448275862], [0.41379310344827586], [0.4482758620689655], [0.48275862068965514], [0.5172413793103449], [0.5517241379310345], [0.5862068965517241], [0.6206896551724138], [0.6551724137931034], [0.6896551724137931], [0.7241379310344828], [0.7586206896551724], [0.7931034482758621], [0.8275862068965517], [0.8620689655172413], [0.896551724137931], [0.9310344827586207], [0.9655172413793103], [1.0]], "space": null}, "context": null, "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": 0.2, "scale": 1.0}, "noise": 0.1, "regularization": 0.27631021115928556, "prior_mean": 0.0, "memory": {"type": "RestartOnChange", "threshold": null, "ridge": null, "distance": "average"}, "explore": {"type": "UniformExploration", "xi": 1.7320508075688772}, "pending": {"type": "Ignored", "failed": "aside"}, "objective": {"type": "RewardAlone"}, "confidence": {"type": "DriftBayes", "horizon": 100, "alpha": 2.5, "dimension": 1, "constant": 0.02, "log_power": 3.0, "delta": 0.1}, "score": {"type": "UpperConfidenceBound"}, "search": {"type": "PointSearch", "candidates": 1024, "around": 48, "starts": 3, "evaluations": 20, "mutations": 0, "incumbents": 1, "apart": 0.0}, "refit": null, "constraints": null, "sketch": null, "switching": null}','1','{}',7,1.79542365790679526332e+09,'maximize',16,'1be8b81792869d53',8,8,0,0,1.0,1000000000.0);
CREATE TABLE trials (
	study INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	state TEXT NOT NULL, 
	arm INTEGER, 
	point TEXT NOT NULL, 
	parameters TEXT, 
	context TEXT, 
	explored BOOLEAN NOT NULL, 
	reward DOUBLE, 
	reason TEXT, 
	asked_order INTEGER NOT NULL, 
	asked_at DOUBLE NOT NULL, 
	told_order INTEGER, 
	told_at DOUBLE, 
	constraints TEXT, 
	constraints_order INTEGER, 
	last_order INTEGER, 
	lease_until DOUBLE, 
	abandoned_order INTEGER, 
	abandoned_at DOUBLE, 
	abandoned_reason TEXT, 
	corrected TEXT, 
	repeats INTEGER, 
	plays INTEGER, 
	scatter DOUBLE, 
	fits TEXT, 
	PRIMARY KEY (study, number), 
	UNIQUE (study, asked_order), 
	UNIQUE (study, told_order), 
	FOREIGN KEY(study) REFERENCES studies (id)
);
INSERT INTO "trials" VALUES(1,0,'observed',NULL,'[0.5318001052364707, 0.0, 0.7071067811865476]','{"price": 5.25440084189, "kind": "b"}',NULL,0,1.5735214721343404598e+00,NULL,1,1.79542365395201706885e+09,2,1.7954236565146753788e+09,'[-1.74559915811]',NULL,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]');
INSERT INTO "trials" VALUES(1,1,'observed',NULL,'[0.06747122574597597, 0.7071067811865476, 0.0]','{"price": 1.53976980597, "kind": "a"}',NULL,0,7.05273260761689257947e+00,NULL,3,1.7954236565159533024e+09,4,1.79542365652179551128e+09,'[-5.46023019403]',NULL,4,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]');
INSERT INTO "trials" VALUES(1,2,'observed',NULL,'[0.3148360438644886, 0.0, 0.7071067811865476]','{"price": 3.51868835092, "kind": "b"}',NULL,0,2.31660903540108875642e-01,NULL,5,1.79542365655529952053e+09,6,1.79542365658328628543e+09,'[-3.48131164908]',NULL,6,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]');
INSERT INTO "trials" VALUES(1,3,'failed',NULL,'[0.7889536749571562, 0.7071067811865476, 0.0]','{"price": 7.31162939966, "kind": "a"}',NULL,0,NULL,'broken',7,1.79542365660492539403e+09,8,1.7954236567972078324e+09,NULL,NULL,8,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 1, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.14202221582511143, 0.2629912147394865], "scale": 1.0}, "groups": [0, 1, 1]}, "regularization": 0.006747909906346972, "mean": -1.5204671861183243, "std": 0.9279499386771393, "warp": {"type": "Warp", "knots": [-7.052732607616893, -1.5735214721343405], "heights": [-2.491448500483031, -1.5735214721343405]}}}, {"channel": 1, "number": 1, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.15917188417337813, 0.2946187262846698], "scale": 1.0}, "groups": [0, 1, 1]}, "regularization": 0.006746772648933583, "mean": -2.242668084050722, "std": 0.6584535076517855, "warp": {"type": "SignedLog", "scale": 2.613455403595}}}]');
INSERT INTO "trials" VALUES(1,4,'observed',NULL,'[0.9374842178076506, 0.0, 0.7071067811865476]','{"price": 8.49987374246, "kind": "b"}',NULL,0,2.024886369808096731e+01,NULL,9,1.79542365680002045632e+09,10,1.79542365681050443654e+09,'[1.4998737424600002]',NULL,10,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]');
INSERT INTO "trials" VALUES(1,5,'abandoned',NULL,'[0.463366586714983, 0.7071067811865476, 0.0]','{"price": 4.70693269372, "kind": "a"}',NULL,0,NULL,NULL,11,1.79542365683142518995e+09,NULL,NULL,NULL,NULL,12,NULL,12,1.7954236568377511501e+09,'gone',NULL,NULL,NULL,NULL,'[]');
INSERT INTO "trials" VALUES(1,6,'observed',NULL,'[0.2158795790746808, 0.0, 0.7071067811865476]','{"price": 2.7270366326, "kind": "b"}',NULL,0,1.62043573474234747777e+00,NULL,13,1.79542365684012961385e+09,14,1.79542365687660431861e+09,'[-4.2729633674]',NULL,14,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]');
INSERT INTO "trials" VALUES(1,7,'observed',NULL,'[0.6802084585651755, 0.7071067811865476, 0.0]','{"price": 6.44166766852, "kind": "a"}',NULL,0,6.9617410034958933096e+00,NULL,15,1.79542365688448500634e+09,16,1.7954236569045262337e+09,'[-0.5583323314799999]',NULL,16,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]');
INSERT INTO "trials" VALUES(1,8,'observed',NULL,'[0.7353291884064674, 0.0, 0.7071067811865476]','{"price": 6.88263350725, "kind": "b"}',NULL,0,8.30957593712043340872e+00,NULL,17,1.7954236570555238724e+09,18,1795423657.08533,'[-0.11736649275000044]',NULL,18,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 2, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.28462378252935866, 0.272276827266539], "scale": 1.0}, "groups": [0, 1, 1]}, "regularization": 0.006553595573454617, "mean": -5.2243048039269055, "std": 3.031517239630261, "warp": {"type": "Warp", "knots": [-20.248863698080967, -7.052732607616893, -6.961741003495893, -4.29108836911912], "heights": [-8.736541996069743, -6.459147399591057, -4.967482903334494, -4.29108836911912]}}}, {"channel": 1, "number": 2, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.524475584065577, 4.702588022006825], "scale": 1.0}, "groups": [0, 1, 1]}, "regularization": 0.0050287915340861186, "mean": -0.6416785802318582, "std": 1.1560670759819855, "warp": {"type": "SignedLog", "scale": 1.5613050963725001}}}]');
INSERT INTO "trials" VALUES(1,9,'observed',NULL,'[0.1459855306893587, 0.7071067811865476, 0.0]','{"price": 2.16788424551, "kind": "a"}',NULL,0,4.35664813785046245442e+00,NULL,19,1.79542365710027050978e+09,20,1.79542365711259937284e+09,'[-4.83211575449]',NULL,20,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]');
INSERT INTO "trials" VALUES(1,10,'observed',NULL,'[0.3881538406251425, 0.0, 0.7071067811865476]','{"price": 4.105230725, "kind": "b"}',NULL,0,1.1073505484025665882e-02,NULL,21,1.79542365712825226784e+09,22,1.79542365725935864446e+09,'[-2.894769275]',NULL,22,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]');
INSERT INTO "trials" VALUES(1,11,'observed',NULL,'[0.41278773764109633, 0.7071067811865476, 0.0]','{"price": 4.30230190113, "kind": "a"}',NULL,0,1.09138643942681223819e+00,NULL,23,1.79542365727359247212e+09,24,1.79542365762032127382e+09,'[-2.69769809887]',NULL,24,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 3, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.31188611805465494, 2.9337715112611464], "scale": 1.0}, "groups": [0, 1, 1]}, "regularization": 0.004680799922964413, "mean": -6.087590744334413, "std": 3.162628102006817, "warp": {"type": "Warp", "knots": [-20.248863698080967, -8.309575937120433, -7.052732607616893, -6.961741003495893, -4.3566481378504625], "heights": [-9.451571152570065, -7.450346471255615, -6.241657200416839, -5.2591415847822836, -4.3566481378504625]}}}, {"channel": 1, "number": 3, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.612452709381453, 10.838961224566908], "scale": 1.0}, "groups": [0, 1, 1]}, "regularization": 0.002281466181621813, "mean": -0.550000277330653, "std": 1.0573943583140273, "warp": {"type": "SignedLog", "scale": 1.4998737424600002}}}]');
INSERT INTO "trials" VALUES(1,12,'observed',NULL,'[0.37412265850313037, 0.0, 0.7071067811865476]','{"price": 3.99298126803, "kind": "b"}',NULL,0,4.92625984667019938901e-05,NULL,25,1.79542365763206219673e+09,26,1.79542365772426772119e+09,'[-3.00701873197]',NULL,26,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]');
INSERT INTO "trials" VALUES(1,13,'observed',NULL,'[0.37375064928366086, 0.0, 0.7071067811865476]','{"price": 3.99000519427, "kind": "b"}',NULL,0,9.98961415804386235282e-05,NULL,27,1.79542365773612308497e+09,28,1.79542365784393048288e+09,'[-3.00999480573]',NULL,28,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]');
INSERT INTO "trials" VALUES(2,0,'observed',14,'[0.48275862068965514]',NULL,NULL,1,4.82758620689655137958e-01,NULL,1,1000000000.0,2,1000000000.0,NULL,NULL,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(2,1,'observed',15,'[0.5172413793103449]',NULL,NULL,1,5.17241379310344862041e-01,NULL,3,1000000000.0,4,1000000000.0,NULL,NULL,4,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(2,2,'observed',19,'[0.6551724137931034]',NULL,NULL,1,6.55172413793103425305e-01,NULL,5,1000000000.0,6,1000000000.0,NULL,NULL,6,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(2,3,'observed',27,'[0.9310344827586207]',NULL,NULL,0,9.31034482758620662856e-01,NULL,7,1000000000.0,8,1000000000.0,NULL,NULL,8,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(2,4,'observed',18,'[0.6206896551724138]',NULL,NULL,1,6.20689655172413812245e-01,NULL,9,1000000000.0,10,1000000000.0,NULL,NULL,10,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(2,5,'observed',4,'[0.13793103448275862]',NULL,NULL,0,1.37931034482758618775e-01,NULL,11,1000000000.0,12,1000000000.0,NULL,NULL,12,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(2,6,'observed',21,'[0.7241379310344828]',NULL,NULL,1,7.24137931034482762449e-01,NULL,13,1000000000.0,14,1000000000.0,NULL,NULL,14,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(2,7,'observed',29,'[1.0]',NULL,NULL,0,1.0,NULL,15,1000000000.0,16,1000000000.0,NULL,NULL,16,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE UNIQUE INDEX trials_by_last_order ON trials (study, last_order);
COMMIT;
