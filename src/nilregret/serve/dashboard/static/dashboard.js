// The theme, times in words, and the page that stays up to date. Pictures are drawn by pictures.js.
(function () {
  "use strict";
  var POLL = 900; // milliseconds between two looks at a study
  var THEMES = ["automatic", "light", "dark"];

  // -- theme ------------------------------------------------------------------------------------------------------
  function theme() { return document.documentElement.getAttribute("data-theme") || "automatic"; }
  function show(button) {
    button.hidden = false;
    button.querySelector("[data-theme-name]").textContent = theme();
  }
  document.addEventListener("click", function (event) {
    var button = event.target.closest("[data-theme-toggle]");
    if (!button) return;
    var next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length];
    if (next === "automatic") document.documentElement.removeAttribute("data-theme");
    else document.documentElement.setAttribute("data-theme", next);
    try { window.localStorage.setItem("nilregret-theme", next); } catch (_) { /* it holds for this page */ }
    show(button);
    document.dispatchEvent(new Event("theme-changed"));
  });
  document.querySelectorAll("[data-theme-toggle]").forEach(show);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () {
    document.dispatchEvent(new Event("theme-changed"));
  });

  // -- times, in the reader's own zone: the date stays as the title -------------------------------------------------------------------------
  var UNITS = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
  function ago(time) {
    var words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
    var seconds = Date.now() / 1000 - time;
    if (Math.abs(seconds) > 30 * 86400) return null;
    for (var i = 0; i < UNITS.length; i++) {
      if (Math.abs(seconds) >= UNITS[i][0]) return words.format(-Math.round(seconds / UNITS[i][0]), UNITS[i][1]);
    }
    return "just now";
  }
  var zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  var words = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium", timeZone: zone });
  function say(each, said) { if (each.textContent !== said) each.textContent = said; }
  function times(root) {
    root.querySelectorAll("time[data-ago], time[data-at]").forEach(function (each) {
      var since = each.getAttribute("data-ago"), seconds = Number(since || each.getAttribute("data-at"));
      var date = new Date(seconds * 1000);
      if (isNaN(date)) return;
      if (!each.title) each.title = since ? words.format(date) + " (" + zone + ")" : each.textContent + " UTC";
      say(each, since && ago(seconds) || words.format(date));
    });
    root.querySelectorAll("[data-zone]").forEach(function (each) { say(each, zone); });
    root.querySelectorAll("input[data-time]:not([data-local])").forEach(function (each) { // shown once, then typed into
      each.setAttribute("data-local", "");
      var text = each.value.trim(), date = new Date(/^\d{4}-\d\d-\d\d$/.test(text) || /(Z|[+-]\d\d:?\d\d)$/.test(text) ? text : text + "Z");
      if (/^\d{4}-/.test(text) && !isNaN(date)) each.value = words.format(date).replace(/:00$/, "");
    });
  }
  // A typed time without a zone is the reader's, and is sent in UTC. What is no such time goes as it is.
  document.addEventListener("htmx:configRequest", function (event) {
    document.querySelectorAll("input[data-time]").forEach(function (each) {
      var typed = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?$/.exec(each.value.trim());
      var date = typed && new Date(typed[1] + "T" + (typed[2] || "00:00"));
      if (date && each.name.indexOf("to.") === 0 && !date.getMilliseconds()) date.setMilliseconds(999); // all of that second
      if (date && !isNaN(date) && event.detail.parameters[each.name] === each.value)
        event.detail.parameters[each.name] = date.toISOString();
    });
  });
  times(document);
  window.setInterval(function () { if (!document.hidden) times(document); }, 10000);

  // -- up to date -------------------------------------------------------------------------------------------------
  // What has `data-live` asks again by itself, by the event of that name; a line of a list while it is on the screen.
  function look() {
    if (document.hidden) return;
    document.querySelectorAll("[data-live]").forEach(function (each) {
      var box = each.getBoundingClientRect(), name = each.getAttribute("data-live");
      if (each.classList.contains("htmx-request")) return;
      if (name === "row" && (box.bottom < 0 || box.top > window.innerHeight)) return;
      window.htmx.trigger(each, name);
    });
  }
  window.setInterval(look, POLL);
  document.addEventListener("visibilitychange", look);

  // A part with a throttle drops changes within its time, also the last one: after a pause all parts look again.
  var pauses = [2200, 30500], later = [];
  document.body.addEventListener("study-changed", function (event) {
    if (event.detail && event.detail.later) return;
    later.forEach(window.clearTimeout);
    later = pauses.map(function (pause) { return window.setTimeout(function () { window.htmx.trigger(document.body, "study-changed", { later: true }); }, pause); });
  });

  function lost(said) {
    var line = document.getElementById("lost");
    if (line && line.textContent !== said) line.textContent = said;
  }
  function noAnswer() { lost("The server does not answer. What is shown may be out of date; it is asked again every few seconds."); }
  document.addEventListener("htmx:sendError", noAnswer);
  document.addEventListener("htmx:timeout", noAnswer);

  // What a visitor has opened and how far tables are scrolled stays; what is in focus does by its id.
  var open = {}, scrolled = {}, ticked = {}, held = null;
  document.addEventListener("htmx:beforeSwap", function (event) {
    var detail = event.detail, status = detail.xhr.status;
    if (status === 401) { // logged out, or the token is no longer valid
      detail.shouldSwap = false;
      window.location.reload();
      return;
    }
    if (status < 400) lost("");
    else if (status !== 404 && detail.requestConfig.elt.hasAttribute("data-live")) { // a pause, and no news
      detail.shouldSwap = false;
      noAnswer();
      return;
    }
    var focus = document.activeElement;
    held = focus && focus.id && detail.target.contains(focus) ? { id: focus.id, top: focus.getBoundingClientRect().top } : null;
    detail.target.querySelectorAll("input[type=checkbox][id]").forEach(function (each) { ticked[each.id] = each.checked; });
    detail.target.querySelectorAll("details[id]").forEach(function (each) { open[each.id] = each.open; });
    detail.target.querySelectorAll(".scroll[id]").forEach(function (each) { scrolled[each.id] = each.scrollLeft; });
  });
  document.addEventListener("htmx:afterSettle", function (event) {
    var root = event.detail.elt;
    root.querySelectorAll("details[id]").forEach(function (each) { if (open[each.id]) each.open = true; });
    root.querySelectorAll(".scroll[id]").forEach(function (each) { each.scrollLeft = scrolled[each.id] || 0; });
    root.querySelectorAll("input[type=checkbox][id]").forEach(function (each) { if (each.id in ticked) each.checked = ticked[each.id]; });
    times(root.parentNode || document);
    window.nilregretPictures(root);
    var focus = held && document.getElementById(held.id);
    if (focus) window.scrollBy({ top: focus.getBoundingClientRect().top - held.top, behavior: "instant" });
    held = null;
  });
})();
