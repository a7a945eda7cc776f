// Code that is copied by a button.
(function () {
  "use strict";
  function show() {
    document.querySelectorAll("[data-copy]").forEach(function (each) { each.hidden = !navigator.clipboard; });
  }
  show();
  document.addEventListener("htmx:afterSettle", show);
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
