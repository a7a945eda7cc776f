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
INSERT INTO "studies" VALUES(1,'earlier','{"type": "Policy", "algorithm": "auto", "domain": {"type": "Box", "lower": [0.0, -1.0], "upper": [1.0, 1.0]}, "context": null, "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.5, 1.0], "scale": 1.0}, "noise": 0.1, "regularization": 0.010000000000000002, "prior_mean": 0.0, "memory": {"type": "Forever"}, "explore": {"type": "InTurn", "parts": [{"type": "GivenPoints", "points": [[0.3, 0.0]]}, {"type": "InitialDesign", "rounds": 6, "middle": false}, {"type": "Elsewhere", "after": 30, "hope": 0.0005, "stall": 10, "rest": 10, "until": 300, "otherwise": {"type": "CoordinateSearch", "every": 5, "after": 15, "steps": 100}}]}, "pending": {"type": "Hallucinated", "failed": "weighed"}, "objective": {"type": "RewardAlone"}, "confidence": {"type": "ConstantWidth", "value": 2.0, "delta": 0.1}, "score": {"type": "ExpectedImprovement", "incumbent": "pending", "margin": 0.0}, "search": {"type": "PointSearch", "candidates": 1024, "around": 48, "starts": 3, "evaluations": 20, "mutations": 256, "incumbents": 5, "apart": 1e-05}, "refit": {"type": "EarlierStudies", "studies": [{"type": "EarlierStudy", "name": "study", "points": [[0.1, 0.5], [0.3, 0.0], [0.5, -0.4], [0.9, 0.2]], "targets": [-0.22808712611950777, 1.6175151778064203, 0.4169029454495869, -1.12817804574851], "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.18531154058890806, 0.3783031355423876], "scale": 1.0}, "regularization": 0.00012342879809237162}], "around": {"type": "Refit", "every": 3, "prior": "related", "restarts": 2, "outputs": "answered", "standardize": true, "growth": 0.1, "warp": "half-rank", "noise": "unknown"}}, "constraints": null, "sketch": null, "switching": null}','maximize','3','{}',1,1.79587754464324498172e+09,24,'e1733301c34a982a',12,12,0,0,1.02049498660405446592e+00,1700000660.0,NULL);
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
INSERT INTO "trials" VALUES(1,0,'observed',NULL,'[0.3, 0.0]',NULL,NULL,0,1.02049498660405446592e+00,NULL,1,1700000000.0,2,1700000000.0,NULL,NULL,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,1,'observed',NULL,'[0.1750087683534468, -0.42458075799972783]',NULL,NULL,0,7.41997649931324554373e-01,NULL,3,1700000060.0,4,1700000060.0,NULL,NULL,4,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,2,'observed',NULL,'[0.8489429140583504, -0.9892102711527315]',NULL,NULL,0,-1.39555455271127248906e+00,NULL,5,1700000120.0,6,1700000120.0,NULL,NULL,6,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,3,'observed',NULL,'[0.48216508428584004, 0.1310495869619872]',NULL,NULL,0,5.65157548604149240212e-01,NULL,7,1700000180.0,8,1700000180.0,NULL,NULL,8,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 1, "values": {"kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.1972086846734721, 0.3739467521413614], "scale": 1.0}, "regularization": 0.0001234942903315703, "mean": 0.7477282251251425, "std": 0.1925919820104305, "warp": {"type": "Warp", "knots": [-1.3955545527112725, 0.7419976499313246], "heights": [0.551485879455172, 0.7419976499313246]}}}]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,4,'observed',NULL,'[0.6486846612706122, -0.022125161332272825]',NULL,NULL,0,-2.7616944254396491587e-01,NULL,9,1700000240.0,10,1700000240.0,NULL,NULL,10,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,5,'observed',NULL,'[0.016285646204933557, 0.8480441432978489]',NULL,NULL,0,-1.79679562529991315722e-01,NULL,11,1700000300.0,12,1700000300.0,NULL,NULL,12,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,6,'observed',NULL,'[0.28056826575299076, 0.26454434937914084]',NULL,NULL,0,9.21318738921993451995e-01,NULL,13,1700000360.0,14,1700000360.0,NULL,NULL,14,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 2, "values": {"kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.30089395782800726, 0.8709271871124427], "scale": 1.0}, "regularization": 0.00012331270965411026, "mean": -0.039760033604362754, "std": 0.5786242608019866, "warp": {"type": "Warp", "knots": [-1.3955545527112725, -0.2761694425439649, -0.17967956252999132, 0.19273899303707898], "heights": [-0.6543794886973906, -0.22040284316826636, 0.06384634023686006, 0.19273899303707898]}}}]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,7,'observed',NULL,'[0.22579285527983262, -0.005731432927362667]',NULL,NULL,0,9.03694851074760441278e-01,NULL,15,1700000420.0,16,1700000420.0,NULL,NULL,16,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,8,'observed',NULL,'[0.3274174927330821, -0.28614861162229865]',NULL,NULL,0,9.83739579766870875232e-01,NULL,17,1700000480.0,18,1700000480.0,NULL,NULL,18,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,9,'observed',NULL,'[0.3287114880968299, -0.05812222647207066]',NULL,NULL,0,1.01322007620276322015e+00,NULL,19,1700000540.0,20,1700000540.0,NULL,NULL,20,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 3, "values": {"kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.1836079793692625, 0.7464161959023285], "scale": 1.0}, "regularization": 0.00012195375075119606, "mean": 0.6091707872734021, "std": 0.19497064435524283, "warp": {"type": "Warp", "knots": [-1.3955545527112725, -0.2761694425439649, -0.17967956252999132, 0.5651575486041492, 0.7419976499313246], "heights": [0.4279257935383895, 0.5512894535787719, 0.6257979951205815, 0.6863642691243066, 0.7419976499313246]}}}]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,10,'observed',NULL,'[0.302158110089672, -0.10257549922758502]',NULL,NULL,0,9.99319776739559739731e-01,NULL,21,1700000600.0,22,1700000600.0,NULL,NULL,22,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,11,'observed',NULL,'[0.3916528120867996, -0.8155532693202302]',NULL,NULL,0,6.78764362052620806586e-01,NULL,23,1700000660.0,24,1700000660.0,NULL,NULL,24,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
CREATE UNIQUE INDEX trials_by_last_order ON trials (study, last_order);
COMMIT;
