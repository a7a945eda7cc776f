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
INSERT INTO "studies" VALUES(1,'grid','{"type": "Policy", "algorithm": "auto", "domain": {"type": "Arms", "space": {"type": "Space", "parameters": [["rate", {"type": "Float", "low": 0.001, "high": 1.0, "log": true}], ["layers", {"type": "Int", "low": 1, "high": 8, "log": false}], ["kind", {"type": "Choice", "options": ["a", "b", "c"]}]]}, "counts": [["rate", 3], ["layers", 3]]}, "context": null, "kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.5, 0.5, 0.5], "scale": 1.0}, "groups": [0, 1, 2, 2, 2]}, "noise": 0.1, "regularization": 0.010000000000000002, "prior_mean": 0.0, "memory": {"type": "Forever"}, "explore": {"type": "InitialDesign", "rounds": 10, "middle": false}, "pending": {"type": "Ignored", "failed": "weighed"}, "objective": {"type": "RewardAlone"}, "confidence": {"type": "ConstantWidth", "value": 2.0, "delta": 0.1}, "score": {"type": "RandomisedBound", "shift": 2.6026896854443837, "growth": 0.0}, "search": {"type": "PointSearch", "candidates": 1024, "around": 48, "starts": 3, "evaluations": 20, "mutations": 256, "incumbents": 5, "apart": 1e-05}, "refit": {"type": "Refit", "every": 3, "prior": "hvarfner", "restarts": 2, "outputs": "answered", "standardize": true, "growth": 0.1, "warp": "half-rank", "noise": "unknown"}, "constraints": null, "sketch": null, "switching": null}','maximize','3','{}',1,1.79587753339340519898e+09,24,'76c63a73715996a6',12,12,0,0,3.88501771290819031268e-01,1700000660.0,NULL);
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
INSERT INTO "trials" VALUES(1,0,'observed',16,'[0.5000000000000742, 1.0, 0.0, 0.7071067811865476, 0.0]','{"rate": 0.0316227766017, "layers": 8, "kind": "b"}',NULL,0,1.23472144103637229695e-01,NULL,1,1700000000.0,2,1700000000.0,NULL,NULL,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,1,'observed',5,'[0.0, 0.42857142857142855, 0.0, 0.0, 0.7071067811865476]','{"rate": 0.001, "layers": 4, "kind": "c"}',NULL,0,-1.67406928099161300682e-01,NULL,3,1700000060.0,4,1700000060.0,NULL,NULL,4,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,2,'observed',18,'[1.0, 0.0, 0.7071067811865476, 0.0, 0.0]','{"rate": 1.0, "layers": 1, "kind": "a"}',NULL,0,-1.40208741375274659191e+00,NULL,5,1700000120.0,6,1700000120.0,NULL,NULL,6,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,3,'observed',14,'[0.5000000000000742, 0.42857142857142855, 0.0, 0.0, 0.7071067811865476]','{"rate": 0.0316227766017, "layers": 4, "kind": "c"}',NULL,0,2.90983640276097244026e-01,NULL,7,1700000180.0,8,1700000180.0,NULL,NULL,8,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 1, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.3520580918306203, 0.3403301251657765, 0.3368853293020553], "scale": 1.0}, "groups": [0, 1, 2, 2, 2]}, "regularization": 0.006736989464556593, "mean": -0.13718686597739763, "std": 0.20115444445604852, "warp": {"type": "Warp", "knots": [-1.4020874137527466, -0.1674069280991613], "heights": [-0.36638867672872366, -0.1674069280991613]}}}]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,4,'observed',13,'[0.5000000000000742, 0.42857142857142855, 0.0, 0.7071067811865476, 0.0]','{"rate": 0.0316227766017, "layers": 4, "kind": "b"}',NULL,0,2.70239809971632327645e-01,NULL,9,1700000240.0,10,1700000240.0,NULL,NULL,10,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,5,'observed',8,'[0.0, 1.0, 0.0, 0.0, 0.7071067811865476]','{"rate": 0.001, "layers": 8, "kind": "c"}',NULL,0,-4.95184610254575274801e-01,NULL,11,1700000300.0,12,1700000300.0,NULL,NULL,12,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,6,'observed',21,'[1.0, 0.42857142857142855, 0.7071067811865476, 0.0, 0.0]','{"rate": 1.0, "layers": 4, "kind": "a"}',NULL,0,-1.48402558122888228453e+00,NULL,13,1700000360.0,14,1700000360.0,NULL,NULL,14,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 2, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.16805089175568846, 1.0493316685446825, 4.086494862552548], "scale": 1.0}, "groups": [0, 1, 2, 2, 2]}, "regularization": 0.006293552819545883, "mean": -0.0958346753271039, "std": 0.24653591497160998, "warp": {"type": "Warp", "knots": [-1.4020874137527466, -0.4951846102545753, -0.1674069280991613, -0.021967391997762035], "heights": [-0.3830286895456438, -0.19805790432632414, -0.07690439250936591, -0.021967391997762035]}}}]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,7,'observed',11,'[0.5000000000000742, 0.0, 0.0, 0.0, 0.7071067811865476]','{"rate": 0.0316227766017, "layers": 1, "kind": "c"}',NULL,0,3.88501771290819031268e-01,NULL,15,1700000420.0,16,1700000420.0,NULL,NULL,16,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,8,'observed',6,'[0.0, 1.0, 0.7071067811865476, 0.0, 0.0]','{"rate": 0.001, "layers": 8, "kind": "a"}',NULL,0,-4.07338994613870741812e-01,NULL,17,1700000480.0,18,1700000480.0,NULL,NULL,18,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,9,'observed',17,'[0.5000000000000742, 1.0, 0.0, 0.0, 0.7071067811865476]','{"rate": 0.0316227766017, "layers": 8, "kind": "c"}',NULL,0,1.22766973182764721483e-01,NULL,19,1700000540.0,20,1700000540.0,NULL,NULL,20,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 3, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.4378832124369615, 1.1938817372748232, 0.2884808875463113], "scale": 1.0}, "groups": [0, 1, 2, 2, 2]}, "regularization": 0.006585440694006302, "mean": -0.1541235965628816, "std": 0.39444981672988033, "warp": {"type": "Warp", "knots": [-1.4840255812288823, -1.4020874137527466, -0.4951846102545753, -0.40733899461387074, -0.1674069280991613], "heights": [-0.8028203435493564, -0.5532375714125677, -0.4024958672527964, -0.2799614145712062, -0.1674069280991613]}}}]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,10,'observed',20,'[1.0, 0.0, 0.0, 0.0, 0.7071067811865476]','{"rate": 1.0, "layers": 1, "kind": "c"}',NULL,0,-1.37725831450882330031e+00,NULL,21,1700000600.0,22,1700000600.0,NULL,NULL,22,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,11,'observed',1,'[0.0, 0.0, 0.0, 0.7071067811865476, 0.0]','{"rate": 0.001, "layers": 1, "kind": "b"}',NULL,0,-1.51548751586560837001e-01,NULL,23,1700000660.0,24,1700000660.0,NULL,NULL,24,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
CREATE UNIQUE INDEX trials_by_last_order ON trials (study, last_order);
COMMIT;
