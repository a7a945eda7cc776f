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
INSERT INTO "studies" VALUES(1,'objectives','{"type": "Policy", "algorithm": "auto", "domain": {"type": "Space", "parameters": [["rate", {"type": "Float", "low": 0.001, "high": 1.0, "log": true}], ["layers", {"type": "Int", "low": 1, "high": 8, "log": false}], ["kind", {"type": "Choice", "options": ["a", "b", "c"]}]]}, "context": null, "kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.5, 0.5, 0.5], "scale": 1.0}, "groups": [0, 1, 2, 2, 2]}, "noise": 0.1, "regularization": 0.010000000000000002, "prior_mean": 0.0, "memory": {"type": "Forever"}, "explore": {"type": "InitialDesign", "rounds": 10, "middle": false}, "pending": {"type": "Ignored", "failed": "weighed"}, "objective": {"type": "RewardAlone"}, "confidence": {"type": "ConstantWidth", "value": 2.0, "delta": 0.1}, "score": {"type": "HypervolumeImprovement"}, "search": {"type": "PointSearch", "candidates": 1024, "around": 48, "starts": 3, "evaluations": 20, "mutations": 256, "incumbents": 5, "apart": 0.0001}, "refit": {"type": "Refit", "every": 3, "prior": "related", "restarts": 2, "outputs": "answered", "standardize": true, "growth": 0.1, "warp": "none", "noise": "unknown"}, "constraints": {"type": "Pareto", "count": 2, "kernel": [{"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.5, 0.5, 0.5], "scale": 1.0}, "groups": [0, 1, 2, 2, 2]}, {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.5, 0.5, 0.5], "scale": 1.0}, "groups": [0, 1, 2, 2, 2]}], "noise": null, "regularization": null, "prior_mean": 0.0, "confidence": null, "pending": null, "objectives": 2, "names": ["loss", "size"], "goals": ["minimize", "maximize"], "limits": 1, "reference": null, "rule": "probability"}, "sketch": null, "switching": null}','minimize','3','{}',1,1.79590413804517412188e+09,20,'499ebceaf934d14d',10,7,2,0,-1.25199346454505433534e+00,1700000480.0,NULL);
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
INSERT INTO "trials" VALUES(1,0,'observed',NULL,'[0.5584434589523467, 0.8571428571428571, 0.0, 0.7071067811865476, 0.0]','{"rate": 0.0473511331918, "layers": 7, "kind": "b"}',NULL,0,-0.0716549225932847,NULL,1,1700000000.0,2,1700000000.0,'{"others": [[5.584434589523467, null]], "constraints": [-0.3415565410476533]}',NULL,2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,0.1,'{"seconds": 1.5}');
INSERT INTO "trials" VALUES(1,1,'failed',NULL,'[0.1750087683534468, 0.2857142857142857, 0.0, 0.0, 0.7071067811865476]','{"rate": 0.00334985728508, "layers": 3, "kind": "c"}',NULL,0,NULL,'it broke',3,1700000060.0,4,1700000060.0,NULL,NULL,4,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,2,'observed',NULL,'[0.8489429140583504, 0.0, 0.0, 0.7071067811865476, 0.0]','{"rate": 0.352231946017, "layers": 1, "kind": "b"}',NULL,0,-1.25199346454505433534e+00,NULL,5,1700000120.0,7,1700000120.0,'{"others": [[8.489429140583503, null]], "constraints": [-0.051057085941649594]}',NULL,7,NULL,NULL,NULL,NULL,'[{"order": 6, "time": 1700000120.0, "reward": 9.0, "reason": null, "constraints": [-0.051057085941649594], "plays": null, "std": null, "others": [[9.0, null]], "metrics": null}]',NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,3,'pending',NULL,'[0.48216508428584004, 0.5714285714285714, 0.7071067811865476, 0.0, 0.0]','{"rate": 0.0279573016813, "layers": 5, "kind": "a"}',NULL,0,NULL,NULL,8,1700000180.0,NULL,NULL,NULL,NULL,8,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,4,'observed',NULL,'[0.4336766652213271, 0.2857142857142857, 0.0, 0.7071067811865476, 0.0]','{"rate": 0.02, "layers": 3, "kind": "b"}',NULL,0,0.25,NULL,9,1700000180.0,9,1700000180.0,'{"others": [[1e-09, null]], "constraints": [0.0]}',NULL,9,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,5,'observed',NULL,'[0.016285646204933557, 1.0, 0.0, 0.0, 0.7071067811865476]','{"rate": 0.00111906918903, "layers": 8, "kind": "c"}',NULL,0,-4.1392590183545652227e-01,NULL,10,1700000240.0,11,1700000240.0,'{"others": [[0.16285646204933557, null]], "constraints": [-0.8837143537950665]}',NULL,11,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 1, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.22435382232348727, 0.24359456210717872, 0.3547009307019956], "scale": 1.0}, "groups": [0, 1, 2, 2, 2]}, "regularization": 0.00012344101180978857, "mean": 0.3727663112765384, "std": 0.6457248580197277, "warp": null}}, {"channel": 1, "number": 1, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.20746199537153223, 0.2134769293715399, 0.3547009307019956], "scale": 1.0}, "groups": [0, 1, 2, 2, 2]}, "regularization": 0.0001234311960362628, "mean": 4.769365373643034, "std": 3.5228667324463543, "warp": null}}, {"channel": 2, "number": 1, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.3096681616489663, 0.26828916884881576, 0.3547009307019956], "scale": 1.0}, "groups": [0, 1, 2, 2, 2]}, "regularization": 0.00012341483642485185, "mean": -0.14300867687408678, "std": 0.1504281409009244, "warp": null}}]',NULL,0.1,'{"seconds": 1.5}');
INSERT INTO "trials" VALUES(1,6,'observed',NULL,'[0.9441265168736876, 0.7142857142857143, 0.0, 0.0, 0.7071067811865476]','{"rate": 0.679797480461, "layers": 6, "kind": "c"}',NULL,0,-1.59043897588752813909e+00,NULL,12,1700000300.0,13,1700000300.0,'{"others": [[9.441265168736876, null]], "constraints": [0.04412651687368763]}',NULL,13,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,0.1,'{"seconds": 1.5}');
INSERT INTO "trials" VALUES(1,7,'observed',NULL,'[0.32631301158888326, 0.14285714285714285, 0.0, 0.7071067811865476, 0.0]','{"rate": 0.00952662422137, "layers": 2, "kind": "b"}',NULL,0,8.25117272545959123952e-01,NULL,14,1700000360.0,15,1700000360.0,'{"others": [[3.2631301158888326, null]], "constraints": [-0.5736869884111168]}',NULL,15,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,0.1,'{"seconds": 1.5}');
INSERT INTO "trials" VALUES(1,8,'failed',NULL,'[0.6012283936411557, 0.14285714285714285, 0.0, 0.0, 0.7071067811865476]','{"rate": 0.0636334076562, "layers": 2, "kind": "c"}',NULL,0,NULL,'it broke',16,1700000420.0,17,1700000420.0,NULL,NULL,17,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 2, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.26616332676224913, 0.3288068633947057, 0.34301504046847364], "scale": 1.0}, "groups": [0, 1, 2, 2, 2]}, "regularization": 0.00012407433234328734, "mean": 0.5450839729286193, "std": 0.8337513591043149, "warp": null}}, {"channel": 1, "number": 2, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.21252083546561262, 0.2147468266566705, 0.3599948110862339], "scale": 1.0}, "groups": [0, 1, 2, 2, 2]}, "regularization": 0.00012272315916752084, "mean": 4.954925784042252, "std": 3.699047805103503, "warp": null}}, {"channel": 2, "number": 2, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.15169877654366332, 0.14122044635740022, 0.35456796110099936], "scale": 1.0}, "groups": [0, 1, 2, 2, 2]}, "regularization": 0.00012317155040645058, "mean": -0.3041266851406872, "std": 0.33856161813688757, "warp": null}}]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,9,'observed',NULL,'[0.2336637825568303, 0.7142857142857143, 0.0, 0.7071067811865476, 0.0]','{"rate": 0.00502332581589, "layers": 6, "kind": "b"}',NULL,0,0.649947393596777,NULL,18,1700000480.0,20,1700000480.0,'{"others": [[2.336637825568303, null]], "constraints": [-0.6663362174431697]}',NULL,20,NULL,NULL,NULL,NULL,'[{"order": 19, "time": 1700000480.0, "reward": 9.0, "reason": null, "constraints": [-0.6663362174431697], "plays": null, "std": null, "others": [[9.0, null]], "metrics": null}]',NULL,NULL,NULL,'[]',NULL,NULL,NULL);
CREATE UNIQUE INDEX trials_by_last_order ON trials (study, last_order);
COMMIT;
