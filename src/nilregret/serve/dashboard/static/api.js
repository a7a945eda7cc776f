// The page of the API: the request as a line of curl, and sending it. The token stays in its field.
(function () {
  "use strict";
  var token = document.querySelector("[data-api-token]");

  function quoted(text) { return "'" + text.replace(/'/g, "'\\''") + "'"; }

  function request(operation) {
    var path = operation.getAttribute("data-path"), query = [], headers = {};
    operation.querySelectorAll("[data-in]").forEach(function (input) {
      var name = input.getAttribute("data-name"), place = input.getAttribute("data-in"), value = input.value;
      if (place === "path") { if (value) path = path.replace("{" + name + "}", encodeURIComponent(value)); }
      else if (value && place === "query") query.push(encodeURIComponent(name) + "=" + encodeURIComponent(value));
      else if (value && place === "header") headers[name] = value;
    });
    var body = operation.querySelector("[data-body]");
    if (body) headers["Content-Type"] = "application/json";
    return {
      method: operation.getAttribute("data-method"), headers: headers, body: body ? body.value : null,
      address: path + (query.length ? "?" + query.join("&") : "")
    };
  }

  function curl(asked) {
    var words = ["curl"];
    if (asked.method !== "GET") words.push("-X " + asked.method);
    words.push(quoted(location.origin + asked.address), '-H "Authorization: Bearer $TOKEN"');
    Object.keys(asked.headers).forEach(function (name) { words.push("-H " + quoted(name + ": " + asked.headers[name])); });
    if (asked.body !== null) words.push("-d " + quoted(asked.body));
    return words.join(" \\\n  ");
  }

  function show(operation, status, text) {
    operation.querySelector("[data-status]").textContent = status;
    operation.querySelector("[data-text]").textContent = text;
    operation.querySelector("[data-answer]").hidden = false;
  }

  function pretty(text) {
    try { return JSON.stringify(JSON.parse(text), null, 1); } catch (_) { return text; }
  }

  function send(operation) {
    var asked = request(operation);
    if (/\{\w+\}/.test(asked.address)) return show(operation, "Not sent", "Fill in what is required.");
    var headers = Object.assign({}, asked.headers);
    if (token.value) headers.Authorization = "Bearer " + token.value.trim();
    var options = { method: asked.method, headers: headers, credentials: "omit", cache: "no-store", redirect: "error" };
    if (asked.body !== null) options.body = asked.body;
    fetch(asked.address, options).then(function (answer) {
      return answer.text().then(function (text) {
        show(operation, answer.status + " " + answer.statusText, pretty(text));
      });
    }).catch(function (error) { show(operation, "No answer", String(error)); });
  }

  document.querySelectorAll(".operation").forEach(function (operation) {
    var line = operation.querySelector("[data-curl]"), example = operation.querySelector("[data-example]");
    function again() { line.textContent = curl(request(operation)); }
    if (example) example.addEventListener("change", function () {
      operation.querySelector("[data-body]").value = example.value;
      again();
    });
    operation.addEventListener("input", again);
    var button = operation.querySelector("[data-send]");
    button.hidden = false;
    button.addEventListener("click", function () { send(operation); });
    again();
  });

  function open() {
    var named = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (named && named.tagName === "DETAILS") named.open = true;
  }
  window.addEventListener("hashchange", open);
  open();
})();
