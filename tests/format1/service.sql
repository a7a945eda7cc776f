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
INSERT INTO "notes" VALUES('1:1795877554.6059673','audit:01795877554605967008d92','{"at":1795877554.6059673,"token":"d92b86f437e8","action":"make","arguments":{"seed":7,"goal":"maximize"},"outcome":"done"}');
INSERT INTO "notes" VALUES('1:1795877554.6059673','key:5664c7d18522537f85ce75877f1669d40d4d8fd0f859ef7d762bb12d19bd41f0','["23aa37ece988a1e916e0f7b834ccf7ed217f4d1240e3b12e0ed5383666c68879",[0],null]');
INSERT INTO "notes" VALUES('','secret','f3f080e77a602ff5bdfd68cc40a13ff9fca614718c77e43850f5310dd756f1bc');
INSERT INTO "notes" VALUES('1:1795877554.6059673','key:b5bdb802075c020a4014aed286fe5335c19150765fe2990046e8be148658f6d7','["23aa37ece988a1e916e0f7b834ccf7ed217f4d1240e3b12e0ed5383666c68879",[1],null]');
INSERT INTO "notes" VALUES('1:1795877554.6059673','key:f66472702c25b3cfc2c1f0d9c3dc6fe76ded0c5dcab0d031f43de9c7bc0e4f55','["23aa37ece988a1e916e0f7b834ccf7ed217f4d1240e3b12e0ed5383666c68879",[2],null]');
INSERT INTO "notes" VALUES('1:1795877554.6059673','default:0','0.0');
INSERT INTO "notes" VALUES('1:1795877554.6059673','key:2bcdeb34a92afa2101794d9dec56957d3cdcd35ad15f391fa873793294cc3f8d','["23aa37ece988a1e916e0f7b834ccf7ed217f4d1240e3b12e0ed5383666c68879",[3],null]');
INSERT INTO "notes" VALUES('1:1795877554.6059673','key:b9948c3b4a8645d8483b75dba77e0ee66160196768687eedac7a7fda86245ab7','["23aa37ece988a1e916e0f7b834ccf7ed217f4d1240e3b12e0ed5383666c68879",[4],null]');
INSERT INTO "notes" VALUES('1:1795877554.6059673','key:1ff505b3ffb545524ed073628738df4786cbc545600eb9d9caa9509d060068d9','["23aa37ece988a1e916e0f7b834ccf7ed217f4d1240e3b12e0ed5383666c68879",[5],null]');
INSERT INTO "notes" VALUES('1:1795877554.6059673','default:3','0.0');
INSERT INTO "notes" VALUES('1:1795877554.6059673','key:fab0e0e21a53b282fc0e0d242608e31392eb65af2461e8addea40b81dcd1d2f6','["23aa37ece988a1e916e0f7b834ccf7ed217f4d1240e3b12e0ed5383666c68879",[6],null]');
INSERT INTO "notes" VALUES('1:1795877554.6059673','key:01243db018cd61ac6553ac46ce69058448d206e981c12c6ca2f25e4ec657c7e8','["23aa37ece988a1e916e0f7b834ccf7ed217f4d1240e3b12e0ed5383666c68879",[7],null]');
INSERT INTO "notes" VALUES('1:1795877554.6059673','late:0','[1.0, null, null, null, null]');
INSERT INTO "notes" VALUES('1:1795877554.6059673','audit:01700000480000000687b19','{"at":1700000480.0,"token":"d92b86f437e8","action":"update","arguments":{"note":"of summer","tags":["a","b"]},"outcome":"done"}');
INSERT INTO "notes" VALUES('1:1795877554.6059673','beside','{"note":"of summer","tags":["a","b"]}');
CREATE TABLE sessions (
	hash TEXT NOT NULL, 
	token TEXT NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	PRIMARY KEY (hash)
);
INSERT INTO "sessions" VALUES('66d34fba71f8f450f7e45598853e53bfc23bbd129027cbb131a2f4ffd7878cd0','d92b86f437e8',1700043200.0);
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
INSERT INTO "studies" VALUES(1,'shops/shop','{"type": "Policy", "algorithm": "gp_ts", "domain": {"type": "Arms", "points": [[0.0], [0.3], [0.6], [1.0]], "space": null}, "context": null, "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": 0.3, "scale": 1.0}, "noise": 0.5, "regularization": 1.0, "prior_mean": 0.0, "memory": {"type": "Forever"}, "explore": {"type": "NoExploration"}, "pending": {"type": "Exposed", "failed": "worst", "in_time": true, "wait": 150.0, "minimum": 0.0}, "objective": {"type": "Bernoulli", "ceiling": null, "losses": false}, "confidence": {"type": "ScheduledWidth", "schedule": {"type": "PowerLaw", "constant": 0.6, "exponent": 0.0}, "delta": 0.1}, "score": {"type": "ThompsonSample", "grid": null, "growth": 2.0, "per_norm": true, "width": null}, "search": {"type": "PointSearch", "candidates": 1024, "around": 48, "starts": 3, "evaluations": 20, "mutations": 0, "incumbents": 1, "apart": 0.0}, "refit": null, "constraints": null, "sketch": null, "switching": null}','maximize','7','{"propensities": true, "service": {"deadline": 150.0, "default_reward": 0.0, "late": "drop", "on_deadline": "reward"}}',1,1.79587755460596728328e+09,17,'459cba939112952e',8,7,0,0,1.0,1700000420.0,NULL);
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
INSERT INTO "tokens" VALUES('d92b86f437e8','752be39a34b025dd78ff009571248dee8e4561d78f633f408865567b85a0dfe1','admin','shops','the till',1700000000.0,NULL,NULL);
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
INSERT INTO "trials" VALUES(1,0,'observed',3,'[1.0]',NULL,NULL,0,0.0,NULL,1,1700000000.0,7,1700000180.0,NULL,NULL,7,1700000150.0,6,1700000180.0,'its lease of 150 s ran out',NULL,NULL,NULL,NULL,NULL,2.9439748453384106952e-01,NULL,NULL);
INSERT INTO "trials" VALUES(1,1,'observed',2,'[0.6]',NULL,NULL,0,0.0,NULL,2,1700000060.0,3,1700000060.0,NULL,NULL,3,1700000210.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,2.28217332103989589686e-01,NULL,NULL);
INSERT INTO "trials" VALUES(1,2,'observed',1,'[0.3]',NULL,NULL,0,0.0,NULL,4,1700000120.0,5,1700000120.0,NULL,NULL,5,1700000270.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,2.11996950117586985262e-01,NULL,NULL);
INSERT INTO "trials" VALUES(1,3,'observed',3,'[1.0]',NULL,NULL,0,0.0,NULL,8,1700000180.0,14,1700000360.0,NULL,NULL,14,1700000330.0,13,1700000360.0,'its lease of 150 s ran out',NULL,NULL,NULL,NULL,NULL,2.47019373170970280018e-01,NULL,NULL);
INSERT INTO "trials" VALUES(1,4,'observed',3,'[1.0]',NULL,NULL,0,0.0,NULL,9,1700000240.0,10,1700000240.0,NULL,NULL,10,1700000390.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,2.47019373170970280018e-01,NULL,NULL);
INSERT INTO "trials" VALUES(1,5,'observed',0,'[0.0]',NULL,NULL,0,1.0,NULL,11,1700000300.0,12,1700000300.0,NULL,NULL,12,1700000450.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,5.70973516512065071282e-01,NULL,NULL);
INSERT INTO "trials" VALUES(1,6,'pending',3,'[1.0]',NULL,NULL,0,NULL,NULL,15,1700000360.0,NULL,NULL,NULL,NULL,15,1700000510.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0.022649504074143,NULL,NULL);
INSERT INTO "trials" VALUES(1,7,'observed',0,'[0.0]',NULL,NULL,0,0.0,NULL,16,1700000420.0,17,1700000420.0,NULL,NULL,17,1700000570.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,8.36846318594344773522e-01,NULL,NULL);
CREATE UNIQUE INDEX trials_by_last_order ON trials (study, last_order);
COMMIT;
