// Order of search results: a title that is the query first; guides before the reference, measured pages last.
const EXPLAINED = { importance: "pictures", install: "install", quickstart: "quickstart", optuna: "from-optuna" };
var Scorer = {
  score: ([docname, title, anchor, descr, score]) => {
    const query = (new URLSearchParams(window.location.search).get("q") || "").trim().toLowerCase();
    const last = title.toLowerCase().split(/ > |\./).pop().trim();
    if (last === query) score += 40;
    if (docname === query || docname === `api/${query}`) score += 40;
    if (docname === EXPLAINED[query]) score += 60;
    if (/^(api|genindex)/.test(docname)) score -= 4;
    if (/^(measured|papers|architecture|threats)/.test(docname)) score -= 12;
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
