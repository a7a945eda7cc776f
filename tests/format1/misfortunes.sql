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
INSERT INTO "studies" VALUES(1,'misfortunes','{"type": "Policy", "algorithm": "gp_ucb", "domain": {"type": "Arms", "points": [[0.0], [0.125], [0.25], [0.375], [0.5], [0.625], [0.75], [0.875], [1.0]], "space": null}, "context": null, "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": 0.2, "scale": 1.0}, "noise": 0.5, "regularization": 0.25, "prior_mean": 0.0, "memory": {"type": "Forever"}, "explore": {"type": "NoExploration"}, "pending": {"type": "Ignored", "failed": "aside"}, "objective": {"type": "RewardAlone"}, "confidence": {"type": "FiniteBayes", "size": 9, "delta": 0.1, "scale": 1.0, "noise_matched": true, "series": null}, "score": {"type": "UpperConfidenceBound"}, "search": {"type": "PointSearch", "candidates": 1024, "around": 48, "starts": 3, "evaluations": 20, "mutations": 0, "incumbents": 1, "apart": 0.0}, "refit": null, "constraints": null, "sketch": null, "switching": null}','maximize','3','{}',1,1.7958775455919554233e+09,31,'806f7dc18722655d',16,9,2,4,0.945264246542768,1700000780.0,NULL);
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
INSERT INTO "trials" VALUES(1,0,'observed',8,'[1.0]',NULL,NULL,0,-1.20892427466313834294e+00,NULL,1,1700000000.0,2,1700000000.0,NULL,NULL,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0.1,'{"seconds": 1.5, "loss": -0.0}');
INSERT INTO "trials" VALUES(1,1,'abandoned',0,'[0.0]',NULL,NULL,0,NULL,NULL,3,1700000060.0,NULL,NULL,NULL,NULL,6,1700000150.0,6,1700000180.0,'its lease of 90 s ran out',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,2,'failed',0,'[0.0]',NULL,NULL,0,NULL,'it broke',4,1700000120.0,5,1700000120.0,NULL,NULL,5,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,3,'abandoned',1,'[0.125]',NULL,NULL,0,NULL,NULL,7,1700000180.0,NULL,NULL,NULL,NULL,8,NULL,8,1700000180.0,'the machine was switched off',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,4,'observed',1,'[0.125]',NULL,NULL,0,0.532279479624784,NULL,9,1700000240.0,11,1700000240.0,NULL,NULL,11,NULL,NULL,NULL,NULL,'[{"order": 10, "time": 1700000240.0, "reward": 0.932279479624784, "reason": null, "constraints": null, "plays": null, "std": null, "metrics": null}]',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,5,'observed',4,'[0.5]',NULL,NULL,0,4.78287533849381274464e-01,NULL,12,1700000300.0,13,1700000300.0,NULL,NULL,13,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,6,'observed',5,'[0.625]',NULL,NULL,0,0.25,NULL,14,1700000300.0,14,1700000300.0,NULL,NULL,14,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,7,'observed',2,'[0.25]',NULL,NULL,0,0.945264246542768,NULL,15,1700000360.0,16,1700000360.0,NULL,NULL,16,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0.1,'{"seconds": 1.5, "loss": -6.0}');
INSERT INTO "trials" VALUES(1,8,'abandoned',3,'[0.375]',NULL,NULL,0,NULL,NULL,17,1700000420.0,NULL,NULL,NULL,NULL,20,1700000510.0,20,1700000540.0,'its lease of 90 s ran out',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,9,'failed',3,'[0.375]',NULL,NULL,0,NULL,'it broke',18,1700000480.0,19,1700000480.0,NULL,NULL,19,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,10,'abandoned',6,'[0.75]',NULL,NULL,0,NULL,NULL,21,1700000540.0,NULL,NULL,NULL,NULL,22,NULL,22,1700000540.0,'the machine was switched off',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,11,'observed',6,'[0.75]',NULL,NULL,0,-7.41860070328904552816e-01,NULL,23,1700000600.0,25,1700000600.0,NULL,NULL,25,NULL,NULL,NULL,NULL,'[{"order": 24, "time": 1700000600.0, "reward": -0.34186007032890453, "reason": null, "constraints": null, "plays": null, "std": null, "metrics": null}]',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,12,'observed',1,'[0.125]',NULL,NULL,0,5.46408598161095326872e-01,NULL,26,1700000660.0,27,1700000660.0,NULL,NULL,27,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,13,'observed',2,'[0.25]',NULL,NULL,0,0.25,NULL,28,1700000660.0,28,1700000660.0,NULL,NULL,28,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,14,'observed',4,'[0.5]',NULL,NULL,0,4.82507731839383613436e-01,NULL,29,1700000720.0,30,1700000720.0,NULL,NULL,30,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0.1,'{"seconds": 1.5, "loss": -12.0}');
INSERT INTO "trials" VALUES(1,15,'pending',1,'[0.125]',NULL,NULL,0,NULL,NULL,31,1700000780.0,NULL,NULL,NULL,NULL,31,1700000870.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE UNIQUE INDEX trials_by_last_order ON trials (study, last_order);
COMMIT;
