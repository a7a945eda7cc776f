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
INSERT INTO "arms" VALUES(1,1,1700000000.0,'enqueued','{"entries": [{"point": [0.0, 0.0, 0.7071067811865476, 0.0, 0.0, 0.0, 0.7071067811865476, 0.4, 0.95, 0.0, 0.5], "arm": null}]}');
INSERT INTO "arms" VALUES(1,2,1700000000.0,'taken','{"entry": 0, "trial": 0, "reason": null}');
INSERT INTO "arms" VALUES(1,4,1700000000.0,'enqueued','{"entries": [{"point": [0.7071067811865476, 0.0, 0.0, 0.0, 0.7071067811865476, 0.0, 0.0, 1.0, 0.43, 0.0, 0.0], "arm": null}]}');
INSERT INTO "arms" VALUES(1,5,1700000000.0,'taken','{"entry": 1, "trial": 1, "reason": null}');
INSERT INTO "arms" VALUES(1,7,1700000000.0,'enqueued','{"entries": [{"point": [0.0, 0.0, 0.0, 0.7071067811865476, 0.7071067811865476, 0.0, 0.0, 0.6, 0.05, 0.0, 0.5], "arm": null}]}');
INSERT INTO "arms" VALUES(1,8,1700000000.0,'taken','{"entry": 2, "trial": 2, "reason": null}');
INSERT INTO "arms" VALUES(1,10,1700000000.0,'enqueued','{"entries": [{"point": [0.0, 0.7071067811865476, 0.0, 0.0, 0.0, 0.7071067811865476, 0.0, 0.2, 0.57, 0.0, 0.0], "arm": null}]}');
INSERT INTO "arms" VALUES(1,11,1700000000.0,'taken','{"entry": 3, "trial": 3, "reason": null}');
INSERT INTO "arms" VALUES(1,19,1700000120.0,'enqueued','{"entries": [{"point": [0.0, 0.0, 0.0, 0.7071067811865476, 0.0, 0.7071067811865476, 0.0, 1.0, 0.17, 0.0, 0.5], "arm": null}]}');
INSERT INTO "arms" VALUES(1,20,1700000120.0,'taken','{"entry": 4, "trial": 6, "reason": null}');
INSERT INTO "arms" VALUES(1,22,1700000120.0,'enqueued','{"entries": [{"point": [0.0, 0.7071067811865476, 0.0, 0.0, 0.7071067811865476, 0.0, 0.0, 0.4, 0.71, 0.0, 0.5], "arm": null}]}');
INSERT INTO "arms" VALUES(1,23,1700000120.0,'taken','{"entry": 5, "trial": 7, "reason": null}');
INSERT INTO "arms" VALUES(1,25,1700000120.0,'enqueued','{"entries": [{"point": [0.0, 0.0, 0.7071067811865476, 0.0, 0.7071067811865476, 0.0, 0.0, 0.8, 0.55, 0.0, 0.5], "arm": null}]}');
INSERT INTO "arms" VALUES(1,26,1700000120.0,'taken','{"entry": 6, "trial": 8, "reason": null}');
INSERT INTO "arms" VALUES(1,28,1700000120.0,'enqueued','{"entries": [{"point": [0.7071067811865476, 0.0, 0.0, 0.0, 0.0, 0.0, 0.7071067811865476, 0.4, 0.09, 0.0, 0.5], "arm": null}]}');
INSERT INTO "arms" VALUES(1,29,1700000120.0,'taken','{"entry": 7, "trial": 9, "reason": null}');
INSERT INTO "arms" VALUES(1,40,1700000240.0,'enqueued','{"entries": [{"point": [0.0, 0.7071067811865476, 0.0, 0.0, 0.7071067811865476, 0.0, 0.0, 0.0, 0.24, 0.0, 0.5], "arm": null}]}');
INSERT INTO "arms" VALUES(1,41,1700000240.0,'taken','{"entry": 8, "trial": 15, "reason": null}');
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
INSERT INTO "studies" VALUES(1,'paper','{"type": "Policy", "algorithm": "auto", "domain": {"type": "Space", "parameters": [["layers", {"type": "Choice", "options": [{"type": "NestedOption", "kind": "tuple", "items": [64, 32]}, {"type": "NestedOption", "kind": "tuple", "items": [64]}, [1], {"type": "NestedOption", "kind": "dict", "items": [["a", {"type": "NestedOption", "kind": "tuple", "items": [1, null]}]]}]}], ["kind", {"type": "Choice", "options": [{"type": "NamedOption", "name": "builtins:dict"}, {"type": "NamedOption", "name": "builtins:list"}, null]}], ["drop", {"type": "Float", "low": 0.0, "high": 0.5, "log": false, "step": 0.1}], ["share", {"type": "Float", "low": 0.0, "high": 1.0, "log": false}], ["fixed", {"type": "Float", "low": 2.0, "high": 2.0, "log": false}], ["more", {"type": "Conditional", "on": "layers", "values": [{"type": "NestedOption", "kind": "tuple", "items": [64, 32]}, {"type": "NestedOption", "kind": "tuple", "items": [64]}], "parameter": {"type": "Int", "low": 1, "high": 3, "log": false}}]]}, "context": null, "kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.5, 0.5, 0.5, 0.5, 0.5, 0.5], "scale": 1.0}, "groups": [0, 0, 0, 0, 1, 1, 1, 2, 3, 4, 5]}, "noise": 0.1, "regularization": 0.010000000000000002, "prior_mean": 0.0, "memory": {"type": "Forever"}, "explore": {"type": "InTurn", "parts": [{"type": "InitialDesign", "rounds": 10, "middle": false}, {"type": "Elsewhere", "after": 30, "hope": 0.0005, "stall": 10, "rest": 10, "until": 300, "otherwise": {"type": "CoordinateSearch", "every": 5, "after": 15, "steps": 100}}]}, "pending": {"type": "Hallucinated", "failed": "weighed"}, "objective": {"type": "RewardAlone"}, "confidence": {"type": "ConstantWidth", "value": 2.0, "delta": 0.1}, "score": {"type": "ExpectedImprovement", "incumbent": "pending", "margin": 0.0}, "search": {"type": "PointSearch", "candidates": 1024, "around": 48, "starts": 3, "evaluations": 20, "mutations": 256, "incumbents": 5, "apart": 1e-05}, "refit": {"type": "Refit", "every": 3, "prior": "related", "restarts": 2, "outputs": "answered", "standardize": true, "growth": 0.1, "warp": "half-rank", "noise": "unknown"}, "constraints": null, "sketch": null, "switching": null}','maximize','3','{}',2,1.79589031595752406122e+09,48,'4befcaf56dac6c85',18,9,3,3,-3.37253085972120336677e-01,1700000300.0,41);
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
INSERT INTO "trials" VALUES(1,0,'observed',NULL,'[0.0, 0.0, 0.7071067811865476, 0.0, 0.0, 0.0, 0.7071067811865476, 0.4, 0.95, 0.0, 0.5]','{"layers": [1], "kind": null, "drop": 0.2, "share": 0.95, "fixed": 2.0}',NULL,0,-6.43749999999999933386e-01,NULL,3,1700000000.0,13,1700000000.0,NULL,NULL,13,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,1,'abandoned',NULL,'[0.7071067811865476, 0.0, 0.0, 0.0, 0.7071067811865476, 0.0, 0.0, 1.0, 0.43, 0.0, 0.0]','{"layers": [64, 32], "kind": "builtins:dict", "drop": 0.5, "share": 0.43, "fixed": 2.0, "more": 1}',NULL,0,NULL,NULL,6,1700000000.0,NULL,NULL,NULL,NULL,15,NULL,15,1700000000.0,'done by hand at other values, as trial 4',NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,2,'failed',NULL,'[0.0, 0.0, 0.0, 0.7071067811865476, 0.7071067811865476, 0.0, 0.0, 0.6, 0.05, 0.0, 0.5]','{"layers": {"a": [1, null]}, "kind": "builtins:dict", "drop": 0.3, "share": 0.05, "fixed": 2.0}',NULL,0,NULL,'dropped',9,1700000000.0,16,1700000000.0,NULL,NULL,16,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,3,'pending',NULL,'[0.0, 0.7071067811865476, 0.0, 0.0, 0.0, 0.7071067811865476, 0.0, 0.2, 0.57, 0.0, 0.0]','{"layers": [64], "kind": "builtins:list", "drop": 0.1, "share": 0.57, "fixed": 2.0, "more": 1}',NULL,0,NULL,NULL,12,1700000000.0,NULL,NULL,NULL,NULL,12,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,4,'observed',NULL,'[0.7071067811865476, 0.0, 0.0, 0.0, 0.7071067811865476, 0.0, 0.0, 1.0, 0.125, 0.0, 0.0]','{"layers": [64, 32], "kind": "builtins:dict", "drop": 0.5, "share": 0.125, "fixed": 2.0, "more": 1}',NULL,0,-1.00160564014896302786e+00,NULL,14,1700000000.0,14,1700000000.0,NULL,NULL,14,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,5,'observed',NULL,'[0.7071067811865476, 0.0, 0.0, 0.0, 0.0, 0.0, 0.7071067811865476, 0.8, 0.2855832423021576, 0.0, 0.0]','{"layers": [64, 32], "kind": null, "drop": 0.4, "share": 0.285583242302, "fixed": 2.0, "more": 1}',NULL,0,-9.45482699605847520807e-01,NULL,17,1700000060.0,18,1700000060.0,NULL,NULL,18,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,6,'observed',NULL,'[0.0, 0.0, 0.0, 0.7071067811865476, 0.0, 0.7071067811865476, 0.0, 1.0, 0.17, 0.0, 0.5]','{"layers": {"a": [1, null]}, "kind": "builtins:list", "drop": 0.5, "share": 0.17, "fixed": 2.0}',NULL,0,-7.03669265749417571775e-01,NULL,21,1700000120.0,31,1700000120.0,NULL,NULL,31,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 1, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.4528470401519652, 0.6595671447990679, 0.48895280792912804, 0.487446797059071, 0.48936937939946157, 0.4884853902649384], "scale": 1.0}, "groups": [0, 0, 0, 0, 1, 1, 1, 2, 3, 4, 5]}, "regularization": 0.00012306278449649547, "mean": -0.8956703055898871, "std": 0.20866015937070256, "warp": {"type": "Warp", "knots": [-1.001605640148963, -0.9454826996058475], "heights": [-1.1518890929280563, -0.9454826996058475]}}}]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,7,'abandoned',NULL,'[0.0, 0.7071067811865476, 0.0, 0.0, 0.7071067811865476, 0.0, 0.0, 0.4, 0.71, 0.0, 0.5]','{"layers": [64], "kind": "builtins:dict", "drop": 0.2, "share": 0.71, "fixed": 2.0, "more": 2}',NULL,0,NULL,NULL,24,1700000120.0,NULL,NULL,NULL,NULL,33,NULL,33,1700000120.0,'done by hand at other values, as trial 10',NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,8,'failed',NULL,'[0.0, 0.0, 0.7071067811865476, 0.0, 0.7071067811865476, 0.0, 0.0, 0.8, 0.55, 0.0, 0.5]','{"layers": [1], "kind": "builtins:dict", "drop": 0.4, "share": 0.55, "fixed": 2.0}',NULL,0,NULL,'dropped',27,1700000120.0,34,1700000120.0,NULL,NULL,34,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,9,'pending',NULL,'[0.7071067811865476, 0.0, 0.0, 0.0, 0.0, 0.0, 0.7071067811865476, 0.4, 0.09, 0.0, 0.5]','{"layers": [64, 32], "kind": null, "drop": 0.2, "share": 0.09, "fixed": 2.0, "more": 2}',NULL,0,NULL,NULL,30,1700000120.0,NULL,NULL,NULL,NULL,30,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,10,'observed',NULL,'[0.0, 0.7071067811865476, 0.0, 0.0, 0.7071067811865476, 0.0, 0.0, 0.4, 0.125, 0.0, 0.5]','{"layers": [64], "kind": "builtins:dict", "drop": 0.2, "share": 0.125, "fixed": 2.0, "more": 2}',NULL,0,-5.59200372812818202739e-01,NULL,32,1700000120.0,32,1700000120.0,NULL,NULL,32,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,11,'observed',NULL,'[0.0, 0.7071067811865476, 0.0, 0.0, 0.7071067811865476, 0.0, 0.0, 0.2, 0.0, 0.0, 0.5]','{"layers": [64], "kind": "builtins:dict", "drop": 0.1, "share": 0.0, "fixed": 2.0, "more": 2}',NULL,0,-3.88548751586560880966e-01,NULL,35,1700000180.0,36,1700000180.0,NULL,NULL,36,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,12,'observed',NULL,'[0.0, 0.7071067811865476, 0.0, 0.0, 0.7071067811865476, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5]','{"layers": [64], "kind": "builtins:dict", "drop": 0.0, "share": 0.0, "fixed": 2.0, "more": 2}',NULL,0,-0.409001174779367,NULL,37,1700000240.0,43,1700000240.0,NULL,NULL,43,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[{"channel": 0, "number": 2, "values": {"kernel": {"type": "Tied", "kernel": {"type": "Matern", "nu": 2.5, "lengthscale": [0.5662253453656718, 1.0933423687555714, 0.33871823622327546, 0.3613487435839721, 0.36586560364411186, 0.3675038575976553], "scale": 1.0}, "groups": [0, 0, 0, 0, 1, 1, 1, 2, 3, 4, 5]}, "regularization": 0.0001235862138259106, "mean": -0.6752262337104314, "std": 0.1692427419323762, "warp": {"type": "Warp", "knots": [-1.001605640148963, -0.9454826996058475, -0.7036692657494176, -0.6737096328747088], "heights": [-0.920238022564936, -0.7939421549946698, -0.7112199679965195, -0.6737096328747088]}}}]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,13,'abandoned',NULL,'[0.0, 0.7071067811865476, 0.0, 0.0, 0.0, 0.7071067811865476, 0.0, 0.2, 0.0, 0.0, 0.5]','{"layers": [64], "kind": "builtins:list", "drop": 0.1, "share": 0.0, "fixed": 2.0, "more": 2}',NULL,0,NULL,NULL,38,1700000240.0,NULL,NULL,NULL,NULL,45,NULL,45,1700000240.0,'done by hand at other values, as trial 16',NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,14,'failed',NULL,'[0.0, 0.7071067811865476, 0.0, 0.0, 0.0, 0.0, 0.7071067811865476, 0.2, 0.0, 0.0, 0.5]','{"layers": [64], "kind": null, "drop": 0.1, "share": 0.0, "fixed": 2.0, "more": 2}',NULL,0,NULL,'dropped',39,1700000240.0,46,1700000240.0,NULL,NULL,46,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,15,'pending',NULL,'[0.0, 0.7071067811865476, 0.0, 0.0, 0.7071067811865476, 0.0, 0.0, 0.0, 0.24, 0.0, 0.5]','{"layers": [64], "kind": "builtins:dict", "drop": 0.0, "share": 0.24, "fixed": 2.0, "more": 2}',NULL,0,NULL,NULL,42,1700000240.0,NULL,NULL,NULL,NULL,42,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,16,'observed',NULL,'[0.0, 0.7071067811865476, 0.0, 0.0, 0.0, 0.7071067811865476, 0.0, 0.2, 0.125, 0.0, 0.5]','{"layers": [64], "kind": "builtins:list", "drop": 0.1, "share": 0.125, "fixed": 2.0, "more": 2}',NULL,0,-4.36718373046410146542e-01,NULL,44,1700000240.0,44,1700000240.0,NULL,NULL,44,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "trials" VALUES(1,17,'observed',NULL,'[0.0, 0.7071067811865476, 0.0, 0.0, 0.0, 0.7071067811865476, 0.0, 0.0, 0.17006520327092284, 0.0, 0.5]','{"layers": [64], "kind": "builtins:list", "drop": 0.0, "share": 0.170065203271, "fixed": 2.0, "more": 2}',NULL,0,-3.37253085972120336677e-01,NULL,47,1700000300.0,48,1700000300.0,NULL,NULL,48,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'[]',NULL,NULL,NULL);
CREATE UNIQUE INDEX trials_by_last_order ON trials (study, last_order);
COMMIT;
