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
INSERT INTO "studies" VALUES(1,'silence','{"type": "Policy", "algorithm": "auto", "domain": {"type": "Arms", "points": [[0.0], [0.125], [0.25], [0.375], [0.5], [0.625], [0.75], [0.875], [1.0]], "space": null}, "context": null, "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.5], "scale": 1.0}, "noise": 0.1, "regularization": 0.010000000000000002, "prior_mean": 0.0, "memory": {"type": "Forever"}, "explore": {"type": "InitialDesign", "rounds": 10, "middle": false}, "pending": {"type": "Imputed", "failed": "weighed", "minimum": null, "answer": null, "delay": null}, "objective": {"type": "RewardAlone"}, "confidence": {"type": "ConstantWidth", "value": 2.0, "delta": 0.1}, "score": {"type": "RandomisedBound", "shift": 1.5040773967762742, "growth": 0.0}, "search": {"type": "PointSearch", "candidates": 1024, "around": 48, "starts": 3, "evaluations": 20, "mutations": 256, "incumbents": 5, "apart": 1e-05}, "refit": {"type": "Refit", "every": 3, "prior": "hvarfner", "restarts": 2, "outputs": "answered", "standardize": true, "growth": 0.1, "warp": "half-rank", "noise": "unknown"}, "constraints": null, "sketch": null, "switching": null}','maximize','3','{}',1,1.79587754093340134621e+09,22,'ef3df23e348fd420',12,10,0,0,1.0,1700000660.0,NULL);
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
INSERT INTO "trials" VALUES(1,0,'observed',0,'[0.0]',NULL,NULL,0,1.0,NULL,1,1700000000.0,4,1700000120.0,NULL,NULL,4,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,1,'observed',7,'[0.875]',NULL,NULL,0,0.0,NULL,2,1700000060.0,6,1700000180.0,NULL,NULL,6,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,2,'observed',4,'[0.5]',NULL,NULL,0,1.0,NULL,3,1700000120.0,8,1700000240.0,NULL,NULL,8,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,3,'observed',5,'[0.625]',NULL,NULL,0,1.0,NULL,5,1700000180.0,10,1700000300.0,NULL,NULL,10,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,4,'observed',3,'[0.375]',NULL,NULL,0,0.0,NULL,7,1700000240.0,12,1700000360.0,NULL,NULL,12,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,5,'observed',1,'[0.125]',NULL,NULL,0,0.0,NULL,9,1700000300.0,14,1700000420.0,NULL,NULL,14,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 1, "values": {"kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.13078554096795386], "scale": 1.0}, "regularization": 0.006741803026818607, "mean": 0.6797478149636581, "std": 0.45604689977108176, "warp": {"type": "Warp", "knots": [0.0, 1.0], "heights": [0.03257843389829895, 1.0]}}}]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,6,'observed',2,'[0.25]',NULL,NULL,0,0.0,NULL,11,1700000360.0,16,1700000480.0,NULL,NULL,16,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,7,'observed',6,'[0.75]',NULL,NULL,0,0.0,NULL,13,1700000420.0,18,1700000540.0,NULL,NULL,18,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,8,'observed',8,'[1.0]',NULL,NULL,0,1.0,NULL,15,1700000480.0,20,1700000600.0,NULL,NULL,20,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 2, "values": {"kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.05865806710669624], "scale": 1.0}, "regularization": 0.0067489122270609, "mean": 0.56595090418466, "std": 0.41862243754902045, "warp": {"type": "Warp", "knots": [0.0, 0.5], "heights": [0.16275512490195915, 0.5]}}}]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,9,'observed',5,'[0.625]',NULL,NULL,0,0.0,NULL,17,1700000540.0,22,1700000660.0,NULL,NULL,22,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,10,'pending',4,'[0.5]',NULL,NULL,0,NULL,NULL,19,1700000600.0,NULL,NULL,NULL,NULL,19,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,11,'pending',8,'[1.0]',NULL,NULL,0,NULL,NULL,21,1700000660.0,NULL,NULL,NULL,NULL,21,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 3, "values": {"kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.07564026643782237], "scale": 1.0}, "regularization": 0.006754787012816952, "mean": 0.4778458530570246, "std": 0.4969039949999533, "warp": null}}]',NULL,NULL,NULL);
CREATE UNIQUE INDEX trials_by_last_order ON trials (study, last_order);
COMMIT;
