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
INSERT INTO "studies" VALUES(1,'space','{"type": "Policy", "algorithm": "auto", "domain": {"type": "Space", "parameters": [["rate", {"type": "Float", "low": 0.001, "high": 1.0, "log": true}], ["layers", {"type": "Int", "low": 1, "high": 8, "log": false}], ["kind", {"type": "Choice", "options": ["a", "b", "c"]}]]}, "context": null, "kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.5, 0.5, 0.5], "scale": 1.0}, "groups": [0, 1, 2, 2, 2]}, "noise": 0.1, "regularization": 0.010000000000000002, "prior_mean": 0.0, "memory": {"type": "Forever"}, "explore": {"type": "InTurn", "parts": [{"type": "InitialDesign", "rounds": 10, "middle": false}, {"type": "Elsewhere", "after": 30, "hope": 0.0005, "stall": 10, "rest": 10, "until": 300, "otherwise": {"type": "CoordinateSearch", "every": 5, "after": 15, "steps": 100}}]}, "pending": {"type": "Hallucinated", "failed": "weighed"}, "objective": {"type": "RewardAlone"}, "confidence": {"type": "ConstantWidth", "value": 2.0, "delta": 0.1}, "score": {"type": "ExpectedImprovement", "incumbent": "pending", "margin": 0.0}, "search": {"type": "PointSearch", "candidates": 1024, "around": 48, "starts": 3, "evaluations": 20, "mutations": 256, "incumbents": 5, "apart": 1e-05}, "refit": {"type": "Refit", "every": 3, "prior": "related", "restarts": 2, "outputs": "answered", "standardize": true, "growth": 0.1, "warp": "half-rank", "noise": "unknown"}, "constraints": null, "sketch": null, "switching": null}','maximize','3','{}',1,1.79587755013115358358e+09,24,'547af0ed31c0f512',12,12,0,0,8.25117272545959123952e-01,1700000660.0,NULL);
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
INSERT INTO "trials" VALUES(1,0,'observed',NULL,'[0.5584434589523467, 0.8571428571428571, 0.0, 0.7071067811865476, 0.0]','{"rate": 0.0473511331918, "layers": 7, "kind": "b"}',NULL,0,-0.0716549225932847,NULL,1,1700000000.0,2,1700000000.0,NULL,NULL,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,1,'observed',NULL,'[0.1750087683534468, 0.2857142857142857, 0.0, 0.0, 0.7071067811865476]','{"rate": 0.00334985728508, "layers": 3, "kind": "c"}',NULL,0,6.21588500032044244392e-01,NULL,3,1700000060.0,4,1700000060.0,NULL,NULL,4,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,2,'observed',NULL,'[0.8489429140583504, 0.0, 0.0, 0.7071067811865476, 0.0]','{"rate": 0.352231946017, "layers": 1, "kind": "b"}',NULL,0,-1.25199346454505433534e+00,NULL,5,1700000120.0,6,1700000120.0,NULL,NULL,6,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,3,'observed',NULL,'[0.48216508428584004, 0.5714285714285714, 0.7071067811865476, 0.0, 0.0]','{"rate": 0.0279573016813, "layers": 5, "kind": "a"}',NULL,0,3.22350563203552042956e-01,NULL,7,1700000180.0,8,1700000180.0,NULL,NULL,8,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 1, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.3641830424856896, 0.36922436403291653, 0.3045341576218491], "scale": 1.0}, "groups": [0, 1, 2, 2, 2]}, "regularization": 0.0001234111537257229, "mean": 0.013843259720067886, "std": 0.47940539171475693, "warp": {"type": "Warp", "knots": [-1.2519934645450543, -0.0716549225932847], "heights": [-0.5458821931057473, -0.0716549225932847]}}}]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,4,'observed',NULL,'[0.6486846612706122, 0.42857142857142855, 0.7071067811865476, 0.0, 0.0]','{"rate": 0.0883189676122, "layers": 4, "kind": "a"}',NULL,0,-4.81124626531097665527e-01,NULL,9,1700000240.0,10,1700000240.0,NULL,NULL,10,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,5,'observed',NULL,'[0.016285646204933557, 1.0, 0.0, 0.0, 0.7071067811865476]','{"rate": 0.00111906918903, "layers": 8, "kind": "c"}',NULL,0,-4.1392590183545652227e-01,NULL,11,1700000300.0,12,1700000300.0,NULL,NULL,12,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,6,'observed',NULL,'[0.9441265168736876, 0.7142857142857143, 0.0, 0.0, 0.7071067811865476]','{"rate": 0.679797480461, "layers": 6, "kind": "c"}',NULL,0,-1.59043897588752813909e+00,NULL,13,1700000360.0,14,1700000360.0,NULL,NULL,14,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 2, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.18156508542120683, 0.20818379681660554, 0.7135017873059815], "scale": 1.0}, "groups": [0, 1, 2, 2, 2]}, "regularization": 0.0001234905385611375, "mean": -0.23049819344747804, "std": 0.5727140995025425, "warp": {"type": "Warp", "knots": [-1.2519934645450543, -0.48112462653109767, -0.4139259018354565, -0.24279041221437062], "heights": [-1.078643269530751, -0.6504379747632618, -0.36996895270561786, -0.24279041221437062]}}}]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,7,'observed',NULL,'[0.32631301158888326, 0.14285714285714285, 0.0, 0.7071067811865476, 0.0]','{"rate": 0.00952662422137, "layers": 2, "kind": "b"}',NULL,0,8.25117272545959123952e-01,NULL,15,1700000420.0,16,1700000420.0,NULL,NULL,16,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,8,'observed',NULL,'[0.6012283936411557, 0.14285714285714285, 0.0, 0.0, 0.7071067811865476]','{"rate": 0.0636334076562, "layers": 2, "kind": "c"}',NULL,0,-8.68672359191660081734e-02,NULL,17,1700000480.0,18,1700000480.0,NULL,NULL,18,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,9,'observed',NULL,'[0.2336637825568303, 0.7142857142857143, 0.0, 0.7071067811865476, 0.0]','{"rate": 0.00502332581589, "layers": 6, "kind": "b"}',NULL,0,0.649947393596777,NULL,19,1700000540.0,20,1700000540.0,NULL,NULL,20,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 3, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.3424052900757005, 0.8414144260161088, 5.166921670282916], "scale": 1.0}, "groups": [0, 1, 2, 2, 2]}, "regularization": 0.00012160507161305537, "mean": -0.23736028217104055, "std": 0.5446464011326788, "warp": {"type": "Warp", "knots": [-1.5904389758875281, -1.2519934645450543, -0.48112462653109767, -0.4139259018354565, -0.08686723591916601], "heights": [-0.9598918060691755, -0.6169782208922089, -0.4098670578637673, -0.2415111728922186, -0.08686723591916601]}}}]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,10,'observed',NULL,'[0.3036467482121628, 0.42857142857142855, 0.0, 0.7071067811865476, 0.0]','{"rate": 0.00814592195096, "layers": 4, "kind": "b"}',NULL,0,7.97522420339405679889e-01,NULL,21,1700000600.0,22,1700000600.0,NULL,NULL,22,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,11,'observed',NULL,'[0.29179538651721393, 0.14285714285714285, 0.7071067811865476, 0.0, 0.0]','{"rate": 0.00750561285714, "layers": 2, "kind": "a"}',NULL,0,8.1054015812417612441e-01,NULL,23,1700000660.0,24,1700000660.0,NULL,NULL,24,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
CREATE UNIQUE INDEX trials_by_last_order ON trials (study, last_order);
COMMIT;
