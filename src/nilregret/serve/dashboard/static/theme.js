// Before anything is drawn: light or dark, as the visitor chose on this machine. Without a choice the browser's.
(function () {
  "use strict";
  var chosen = null;
  try { chosen = window.localStorage.getItem("nilregret-theme"); } catch (_) { /* storage is switched off */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.setAttribute("data-theme", chosen);
})();
