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
INSERT INTO "studies" VALUES(1,'safe','{"type": "Policy", "algorithm": "gp_ucb", "domain": {"type": "Arms", "points": [[0.0], [0.125], [0.25], [0.375], [0.5], [0.625], [0.75], [0.875], [1.0]], "space": null}, "context": null, "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": 0.2, "scale": 1.0}, "noise": 0.1, "regularization": 0.010000000000000002, "prior_mean": 0.0, "memory": {"type": "Forever"}, "explore": {"type": "NoExploration"}, "pending": {"type": "Ignored", "failed": "aside"}, "objective": {"type": "RewardAlone"}, "confidence": {"type": "FiniteBayes", "size": 9, "delta": 0.1, "scale": 1.0, "noise_matched": true, "series": null}, "score": {"type": "UpperConfidenceBound"}, "search": {"type": "PointSearch", "candidates": 1024, "around": 48, "starts": 3, "evaluations": 20, "mutations": 0, "incumbents": 1, "apart": 0.0}, "refit": null, "constraints": {"type": "Safe", "count": 1, "kernel": null, "noise": null, "regularization": null, "prior_mean": 0.0, "confidence": null, "pending": null, "start": [[0.0]], "scale": 1.0, "certificate": "posterior", "delta": 0.05}, "sketch": null, "switching": null}','maximize','3','{}',1,1.79587754867942309385e+09,24,'ad085a5150c64302',12,12,0,0,0.05,1700000660.0,NULL);
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
INSERT INTO "trials" VALUES(1,0,'observed',0,'[0.0]',NULL,NULL,0,0.05,NULL,1,1700000000.0,2,1700000000.0,'[-0.4]',NULL,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,1,'observed',0,'[0.0]',NULL,NULL,0,3.76951127171652328184e-02,NULL,3,1700000060.0,4,1700000060.0,'[-0.4]',NULL,4,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,2,'observed',0,'[0.0]',NULL,NULL,0,6.83686091039168060412e-03,NULL,5,1700000120.0,6,1700000120.0,'[-0.4]',NULL,6,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,3,'observed',0,'[0.0]',NULL,NULL,0,-2.7386463011213418861e-02,NULL,7,1700000180.0,8,1700000180.0,'[-0.4]',NULL,8,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,4,'observed',0,'[0.0]',NULL,NULL,0,-4.81302933156783352419e-02,NULL,9,1700000240.0,10,1700000240.0,'[-0.4]',NULL,10,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,5,'observed',0,'[0.0]',NULL,NULL,0,-4.5184610254575340027e-02,NULL,11,1700000300.0,12,1700000300.0,'[-0.4]',NULL,12,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,6,'observed',0,'[0.0]',NULL,NULL,0,-1.99992657494175649079e-02,NULL,13,1700000360.0,14,1700000360.0,'[-0.4]',NULL,14,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,7,'observed',0,'[0.0]',NULL,NULL,0,1.50296271871818553494e-02,NULL,15,1700000420.0,16,1700000420.0,'[-0.4]',NULL,16,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,8,'observed',0,'[0.0]',NULL,NULL,0,4.26610053861292137789e-02,NULL,17,1700000480.0,18,1700000480.0,'[-0.4]',NULL,18,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,9,'observed',0,'[0.0]',NULL,NULL,0,4.92948290791274876254e-02,NULL,19,1700000540.0,20,1700000540.0,'[-0.4]',NULL,20,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,10,'observed',0,'[0.0]',NULL,NULL,0,3.16659601543149912816e-02,NULL,21,1700000600.0,22,1700000600.0,'[-0.4]',NULL,22,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,11,'observed',0,'[0.0]',NULL,NULL,0,-1.54875158656082303684e-03,NULL,23,1700000660.0,24,1700000660.0,'[-0.4]',NULL,24,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE UNIQUE INDEX trials_by_last_order ON trials (study, last_order);
COMMIT;
