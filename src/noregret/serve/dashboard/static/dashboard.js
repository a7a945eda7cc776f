// The theme, times in words, and the page that stays up to date. Pictures are drawn by pictures.js.
(function () {
  "use strict";
  var POLL = 3000; // milliseconds between two looks at a study
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
    try { window.localStorage.setItem("noregret-theme", next); } catch (_) { /* it holds for this page */ }
    show(button);
    document.dispatchEvent(new Event("theme-changed"));
  });
  document.querySelectorAll("[data-theme-toggle]").forEach(show);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () {
    document.dispatchEvent(new Event("theme-changed"));
  });

  // -- times: the date stays as the title -------------------------------------------------------------------------
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
  function times(root) {
    root.querySelectorAll("time[data-ago]").forEach(function (each) {
      var said = ago(Number(each.getAttribute("data-ago")));
      if (!each.title) each.title = each.textContent;
      if (said !== null && each.textContent !== said) each.textContent = said;
    });
  }
  times(document);
  window.setInterval(function () { if (!document.hidden) times(document); }, 10000);

  // -- up to date -------------------------------------------------------------------------------------------------
  window.setInterval(function () {
    var live = document.querySelector("[data-live]");
    if (live && !document.hidden) window.htmx.trigger(live, "poll");
  }, POLL);

  var open = {};
  document.addEventListener("htmx:beforeSwap", function (event) {
    if (event.detail.xhr.status === 401) { // logged out, or the token is no longer valid
      event.detail.shouldSwap = false;
      window.location.reload();
      return;
    }
    event.detail.target.querySelectorAll("details[id]").forEach(function (each) { open[each.id] = each.open; });
  });
  document.addEventListener("htmx:afterSettle", function (event) {
    var root = event.detail.elt;
    root.querySelectorAll("details[id]").forEach(function (each) { if (open[each.id]) each.open = true; });
    times(root.parentNode || document);
    window.noregretPictures(root);
  });
})();
