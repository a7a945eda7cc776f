// Brushing on parallel axes: a drag along an axis fills in the range of its fields, which select trials of the grid.
(function () {
  "use strict";
  var ranges = {}, begun = null; // shares of the height by key, and the drag that goes on
  function sides(node) { return JSON.parse(node.getAttribute("data-brush")); }
  function brushed(node) { return node && node.drawing ? node.drawing.frames()[0] : null; }
  function place(node, event) {
    var box = node.getBoundingClientRect(), frame = brushed(node), value = frame.value(event.clientX - box.left, event.clientY - box.top);
    return { x: value[0], y: Math.min(1, Math.max(0, value[1])) };
  }
  function show(node) {
    var frame = brushed(node), listed = sides(node);
    node.querySelectorAll(".brush").forEach(function (each) { each.remove(); });
    node.drawing.faded = function (mark, start) { // trials that some range leaves out
      return mark.color !== "text" && listed.some(function (side, i) {
        var range = ranges[side.key], y = mark.y[start + i];
        return range && (y < range[0] - 0.002 || y > range[1] + 0.002);
      });
    };
    node.drawing.draw();
    listed.forEach(function (side, i) {
      var range = ranges[side.key];
      if (!range) return;
      var made = document.createElement("div"), top = frame.at.y(range[1]);
      made.className = "brush";
      Object.assign(made.style, { left: frame.at.x(i) - 8 + "px", width: "16px", top: top + "px", height: Math.max(1, frame.at.y(range[0]) - top) + "px" });
      node.appendChild(made);
    });
  }
  // Of categories a range is one of positions, which two hidden fields hold. The choice of one option gives way to it.
  function fill(form, side, range) {
    var from = form.elements["from." + side.key], to = form.elements["to." + side.key], one = form.elements["is." + side.key];
    function value(share) {
      if (share > 0.995 || share < 0.005) return ""; // an end of the axis is no limit: trials may lie beyond it
      var low = side.ends[0], high = side.ends[1], found = side.ends[2] ? low * Math.pow(high / low, share) : low + share * (high - low);
      return String(Number(found.toPrecision(Math.max(4, Math.min(17, 1 + Math.floor(Math.log10(Math.abs(found) || 1)))))));
    }
    from.value = range ? value(range[0]) : ""; to.value = range ? value(range[1]) : "";
    if (one) one.value = "";
  }
  document.addEventListener("drawn", function (event) { if (event.target.hasAttribute("data-brush")) show(event.target); });
  document.addEventListener("pointerdown", function (event) {
    var node = event.target.closest && event.target.closest("[data-brush]");
    if (!brushed(node)) return;
    var at = place(node, event), listed = sides(node), i = Math.round(at.x);
    if (Math.abs(at.x - i) > 0.3 || !listed[i]) return;
    begun = { node: node, side: listed[i], y: at.y };
    event.preventDefault();
  });
  document.addEventListener("pointermove", function (event) {
    if (!begun) return;
    var y = place(begun.node, event).y;
    ranges[begun.side.key] = [Math.min(begun.y, y), Math.max(begun.y, y)];
    show(begun.node);
  });
  document.addEventListener("pointerup", function () {
    if (!begun) return;
    var form = document.getElementById("brush"), key = begun.side.key, range = ranges[key];
    if (!range || range[1] - range[0] < 0.01) { delete ranges[key]; range = null; }
    show(begun.node);
    fill(form, begun.side, range);
    form.dispatchEvent(new Event("change", { bubbles: true }));
    begun = null;
  });
  document.addEventListener("reset", function (event) {
    if (event.target.id !== "brush") return;
    ranges = {};
    event.target.querySelectorAll("input[type=hidden]").forEach(function (each) { each.value = ""; });
    document.querySelectorAll("[data-brush]").forEach(show);
    document.getElementById("selected").replaceChildren();
  });
})();
