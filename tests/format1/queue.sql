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
INSERT INTO "arms" VALUES(1,5,1700000120.0,'enqueued','{"entries": [{"point": [0.0, 1.0, 0.0, 0.0, 0.7071067811865476], "arm": 8}, {"fixed": {"layers": [0.0], "kind": [0.0, 0.7071067811865476, 0.0]}}, {"fixed": {"layers": [1.0]}}]}');
INSERT INTO "arms" VALUES(1,6,1700000120.0,'taken','{"entry": 2, "trial": null, "reason": "it was withdrawn"}');
INSERT INTO "arms" VALUES(1,7,1700000120.0,'taken','{"entry": 0, "trial": 2, "reason": null}');
INSERT INTO "arms" VALUES(1,10,1700000180.0,'taken','{"entry": 1, "trial": 3, "reason": null}');
INSERT INTO "arms" VALUES(1,19,1700000420.0,'enqueued','{"entries": [{"point": [1.0, 0.0, 0.7071067811865476, 0.0, 0.0], "arm": 18}, {"fixed": {"rate": [1.0], "kind": [0.0, 0.0, 0.7071067811865476]}}]}');
INSERT INTO "arms" VALUES(1,20,1700000420.0,'enqueued','{"entries": [{"point": [0.0, 0.0, 0.7071067811865476, 0.0, 0.0], "arm": 0}]}');
INSERT INTO "arms" VALUES(1,21,1700000420.0,'taken','{"entry": 3, "trial": 7, "reason": null}');
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
INSERT INTO "studies" VALUES(1,'queue','{"type": "Policy", "algorithm": "gp_ucb", "domain": {"type": "Arms", "space": {"type": "Space", "parameters": [["rate", {"type": "Float", "low": 0.001, "high": 1.0, "log": true}], ["layers", {"type": "Int", "low": 1, "high": 8, "log": false}], ["kind", {"type": "Choice", "options": ["a", "b", "c"]}]]}, "counts": [["rate", 3], ["layers", 3]]}, "context": null, "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": 0.5, "scale": 1.0}, "noise": 0.1, "regularization": 0.010000000000000002, "prior_mean": 0.0, "memory": {"type": "Forever"}, "explore": {"type": "NoExploration"}, "pending": {"type": "Ignored", "failed": "aside"}, "objective": {"type": "RewardAlone"}, "confidence": {"type": "FiniteBayes", "size": 27, "delta": 0.1, "scale": 1.0, "noise_matched": true, "series": null}, "score": {"type": "UpperConfidenceBound"}, "search": {"type": "PointSearch", "candidates": 1024, "around": 48, "starts": 3, "evaluations": 20, "mutations": 0, "incumbents": 1, "apart": 0.0}, "refit": null, "constraints": null, "sketch": null, "switching": null}','maximize','3','{}',2,1.7958875904851117134e+09,23,'5180505fd27ac9d7',8,8,0,0,-1.12304887282834789385e-01,1700000420.0,21);
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
INSERT INTO "trials" VALUES(1,0,'observed',25,'[1.0, 1.0, 0.0, 0.7071067811865476, 0.0]','{"rate": 1.0, "layers": 8, "kind": "b"}',NULL,0,-1.65892427466313852058e+00,NULL,1,1700000000.0,2,1700000000.0,NULL,NULL,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,1,'observed',2,'[0.0, 0.0, 0.0, 0.0, 0.7071067811865476]','{"rate": 0.001, "layers": 1, "kind": "c"}',NULL,0,-1.12304887282834789385e-01,NULL,3,1700000060.0,4,1700000060.0,NULL,NULL,4,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,2,'observed',8,'[0.0, 1.0, 0.0, 0.0, 0.7071067811865476]','{"rate": 0.001, "layers": 8, "kind": "c"}',NULL,0,-4.43163139089608248966e-01,NULL,8,1700000120.0,9,1700000120.0,NULL,NULL,9,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,3,'observed',1,'[0.0, 0.0, 0.0, 0.7071067811865476, 0.0]','{"rate": 0.001, "layers": 1, "kind": "b"}',NULL,0,-1.77386463011213441065e-01,NULL,11,1700000180.0,12,1700000180.0,NULL,NULL,12,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,4,'observed',18,'[1.0, 0.0, 0.7071067811865476, 0.0, 0.0]','{"rate": 1.0, "layers": 1, "kind": "a"}',NULL,0,-1.45705456797881671704e+00,NULL,13,1700000240.0,14,1700000240.0,NULL,NULL,14,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,5,'observed',6,'[0.0, 1.0, 0.7071067811865476, 0.0, 0.0]','{"rate": 0.001, "layers": 8, "kind": "a"}',NULL,0,-4.95184610254575274801e-01,NULL,15,1700000300.0,16,1700000300.0,NULL,NULL,16,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,6,'observed',20,'[1.0, 0.0, 0.0, 0.0, 0.7071067811865476]','{"rate": 1.0, "layers": 1, "kind": "c"}',NULL,0,-1.42892354041255575936e+00,NULL,17,1700000360.0,18,1700000360.0,NULL,NULL,18,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,7,'observed',18,'[1.0, 0.0, 0.7071067811865476, 0.0, 0.0]','{"rate": 1.0, "layers": 1, "kind": "a"}',NULL,0,-1.39389464747595637206e+00,NULL,22,1700000420.0,23,1700000420.0,NULL,NULL,23,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE UNIQUE INDEX trials_by_last_order ON trials (study, last_order);
COMMIT;
