// Times in the reader's own zone, and code that is copied by a button.
(function () {
  "use strict";
  var zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  var words = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium", timeZone: zone });
  function times(root) {
    root.querySelectorAll("time[data-at]").forEach(function (each) {
      var date = new Date(Number(each.getAttribute("data-at")) * 1000);
      if (isNaN(date)) return;
      if (!each.title) each.title = each.textContent + " UTC";
      var said = words.format(date);
      if (each.textContent !== said) each.textContent = said;
    });
    root.querySelectorAll("[data-zone]").forEach(function (each) { each.textContent = zone; });
    root.querySelectorAll("[data-copy]").forEach(function (each) { each.hidden = !navigator.clipboard; });
  }
  times(document);
  document.addEventListener("htmx:afterSettle", function () { times(document); });
  document.addEventListener("click", function (event) {
    var button = event.target.closest("[data-copy]");
    if (!button) return;
    var text = document.getElementById(button.getAttribute("data-copy")).textContent;
    navigator.clipboard.writeText(text).then(function () {
      button.textContent = "Copied";
      window.setTimeout(function () { button.textContent = "Copy"; }, 2000);
    }, function () { button.textContent = "Not allowed here"; });
  });
})();
