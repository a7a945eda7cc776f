PRAGMA application_id = 1852402802;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE arms (
	study INTEGER NOT NULL, 
	event INTEGER NOT NULL, 
	at DOUBLE NOT NULL, 
	kind TEXT NOT NULL, 
	arms TEXT NOT NULL, 
	PRIMARY KEY (study, event)
);
CREATE TABLE notes (
	study TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (study, "key")
);
CREATE TABLE sessions (
	hash TEXT NOT NULL, 
	token TEXT NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	PRIMARY KEY (hash)
);
CREATE TABLE studies (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	policy TEXT NOT NULL, 
	goal TEXT NOT NULL, 
	seed TEXT NOT NULL, 
	about TEXT NOT NULL, 
	format INTEGER NOT NULL, 
	created_at DOUBLE NOT NULL, 
	events INTEGER NOT NULL, 
	stamp TEXT NOT NULL, 
	trials INTEGER NOT NULL, 
	observed INTEGER NOT NULL, 
	failed INTEGER NOT NULL, 
	abandoned INTEGER NOT NULL, 
	best DOUBLE, 
	last_at DOUBLE, 
	arms INTEGER, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "studies" VALUES(1,'conditional','{"type": "Policy", "algorithm": "auto", "domain": {"type": "Space", "parameters": [["kind", {"type": "Choice", "options": ["a", "b"]}], ["x", {"type": "Float", "low": 0.0, "high": 1.0, "log": false}], ["m", {"type": "Conditional", "on": "kind", "values": ["a"], "parameter": {"type": "Float", "low": 0.0, "high": 1.0, "log": false}}]]}, "context": null, "kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.5, 0.5, 0.5], "scale": 1.0}, "groups": [0, 0, 1, 2]}, "noise": 0.1, "regularization": 0.010000000000000002, "prior_mean": 0.0, "memory": {"type": "Forever"}, "explore": {"type": "InTurn", "parts": [{"type": "InitialDesign", "rounds": 10, "middle": false}, {"type": "Elsewhere", "after": 30, "hope": 0.0005, "stall": 10, "rest": 10, "until": 300, "otherwise": {"type": "CoordinateSearch", "every": 5, "after": 15, "steps": 100}}]}, "pending": {"type": "Hallucinated", "failed": "weighed"}, "objective": {"type": "RewardAlone"}, "confidence": {"type": "ConstantWidth", "value": 2.0, "delta": 0.1}, "score": {"type": "ExpectedImprovement", "incumbent": "pending", "margin": 0.0}, "search": {"type": "PointSearch", "candidates": 1024, "around": 48, "starts": 3, "evaluations": 20, "mutations": 256, "incumbents": 5, "apart": 1e-05}, "refit": {"type": "Refit", "every": 3, "prior": "related", "restarts": 2, "outputs": "answered", "standardize": true, "growth": 0.1, "warp": "half-rank", "noise": "unknown"}, "constraints": null, "sketch": null, "switching": null}','maximize','3','{}',1,1.79587753619855308535e+09,24,'3ce863e4bacc08a5',12,12,0,0,-0.192127358012002,1700000660.0,NULL);
CREATE TABLE tokens (
	id TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	role TEXT NOT NULL, 
	tenant TEXT NOT NULL, 
	about TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE, 
	revoked_at DOUBLE, 
	PRIMARY KEY (id), 
	UNIQUE (hash)
);
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
	last_order INTEGER NOT NULL, 
	lease_until DOUBLE, 
	abandoned_order INTEGER, 
	abandoned_at DOUBLE, 
	abandoned_reason TEXT, 
	corrected TEXT, 
	repeats INTEGER, 
	plays INTEGER, 
	scatter DOUBLE, 
	fits TEXT, 
	propensity DOUBLE, 
	std DOUBLE, 
	metrics TEXT, 
	PRIMARY KEY (study, number), 
	UNIQUE (study, asked_order), 
	UNIQUE (study, told_order), 
	FOREIGN KEY(study) REFERENCES studies (id)
);
INSERT INTO "trials" VALUES(1,0,'observed',NULL,'[0.0, 0.7071067811865476, 0.8437635394869657, 0.5]','{"kind": "b", "x": 0.843763539487}',NULL,0,-3.88581073170271795724e-01,NULL,1,1700000000.0,2,1700000000.0,NULL,NULL,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,1,'observed',NULL,'[0.7071067811865476, 0.0, 0.2877096210001361, 0.8733389818089418]','{"kind": "a", "x": 0.287709621, "m": 0.873338981809}',NULL,0,-7.4978498109789959436e-01,NULL,3,1700000060.0,4,1700000060.0,NULL,NULL,4,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,2,'observed',NULL,'[0.0, 0.7071067811865476, 0.005394864423634238, 0.5]','{"kind": "b", "x": 0.00539486442363}',NULL,0,-2.18171870458253175373e-01,NULL,5,1700000120.0,6,1700000120.0,NULL,NULL,6,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,3,'observed',NULL,'[0.7071067811865476, 0.0, 0.5655247934809936, 0.19751334243820695]','{"kind": "a", "x": 0.565524793481, "m": 0.197513342438}',NULL,0,-6.68866159622191647216e-01,NULL,7,1700000180.0,8,1700000180.0,NULL,NULL,8,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 1, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.2929946794405327, 0.3311215734153348, 0.3351246785338846], "scale": 1.0}, "groups": [0, 0, 1, 2]}, "regularization": 0.00012360489404060585, "mean": -0.37311315206656653, "std": 0.11784473954123287, "warp": {"type": "Warp", "knots": [-0.7497849810978996, -0.3885810731702718], "heights": [-0.5051529560541886, -0.3885810731702718]}}}]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,4,'observed',NULL,'[0.0, 0.7071067811865476, 0.4889374193338636, 0.5]','{"kind": "b", "x": 0.488937419334}',NULL,0,-3.44848233323135855421e-01,NULL,9,1700000240.0,10,1700000240.0,NULL,NULL,10,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,5,'observed',NULL,'[0.7071067811865476, 0.0, 0.9240220716489245, 0.6926044099868172]','{"kind": "a", "x": 0.924022071649, "m": 0.692604409987}',NULL,0,-9.79070660408970838695e-01,NULL,11,1700000300.0,12,1700000300.0,NULL,NULL,12,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,6,'observed',NULL,'[0.0, 0.7071067811865476, 0.6417606678360608, 0.5]','{"kind": "b", "x": 0.641760667836}',NULL,0,-3.68556292183833622555e-01,NULL,13,1700000360.0,14,1700000360.0,NULL,NULL,14,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 2, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.2942394094757108, 0.9127957074082588, 0.6545430835222681], "scale": 1.0}, "groups": [0, 0, 1, 2]}, "regularization": 0.0001228943349664885, "mean": -0.478521888879454, "std": 0.21122087775905432, "warp": {"type": "Warp", "knots": [-0.9790706604089708, -0.7497849810978996, -0.6688661596221916, -0.5287236163962317], "heights": [-0.837859646208045, -0.6794900436995095, -0.5757599682380532, -0.5287236163962317]}}}]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,7,'observed',NULL,'[0.7071067811865476, 0.0, 0.21066046026043095, 0.3605593122904224]','{"kind": "a", "x": 0.21066046026, "m": 0.36055931229}',NULL,0,-5.7111537983789029127e-01,NULL,15,1700000420.0,16,1700000420.0,NULL,NULL,16,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,8,'observed',NULL,'[0.0, 0.7071067811865476, 0.18063188531865193, 0.5]','{"kind": "b", "x": 0.180631885319}',NULL,0,-0.192127358012002,NULL,17,1700000480.0,18,1700000480.0,NULL,NULL,18,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,9,'observed',NULL,'[0.7071067811865476, 0.0, 0.7484484602109795, 0.49602997674687166]','{"kind": "a", "x": 0.748448460211, "m": 0.496029976747}',NULL,0,-7.26402174414107371092e-01,NULL,19,1700000540.0,20,1700000540.0,NULL,NULL,20,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 3, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.29958642233126165, 0.42281497484972963, 0.48216717871496706], "scale": 1.0}, "groups": [0, 0, 1, 2]}, "regularization": 0.0001239426469919952, "mean": -0.41684368412541456, "std": 0.11759483099564387, "warp": {"type": "Warp", "knots": [-0.9790706604089708, -0.7497849810978996, -0.6688661596221916, -0.5711153798378903, -0.3885810731702718], "heights": [-0.5770217681755371, -0.503004522238929, -0.45829997114282156, -0.4219606731929209, -0.3885810731702718]}}}]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,10,'observed',NULL,'[0.0, 0.7071067811865476, 0.12492108968848009, 0.5]','{"kind": "b", "x": 0.124921089688}',NULL,0,-1.98015623440372212638e-01,NULL,21,1700000600.0,22,1700000600.0,NULL,NULL,22,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,11,'observed',NULL,'[0.0, 0.7071067811865476, 0.1868273621600337, 0.5]','{"kind": "b", "x": 0.18682736216}',NULL,0,-2.37020090562063745487e-01,NULL,23,1700000660.0,24,1700000660.0,NULL,NULL,24,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
CREATE UNIQUE INDEX trials_by_last_order ON trials (study, last_order);
COMMIT;
