// Brushing on parallel axes: a drag along an axis fills in the range of its fields, which select trials of the grid.
(function () {
  "use strict";
  function heightsOf(picture) {
    var axes = Array.from(picture.querySelectorAll("[data-axis]")), box = picture.viewBox.baseVal;
    var path = axes[0].querySelector("path").getAttribute("d").match(/[\d.]+/g).map(Number);
    return { axes: axes, top: path[1], bottom: path[2], box: box };
  }
  function place(picture, event) {
    var point = picture.createSVGPoint();
    point.x = event.clientX; point.y = event.clientY;
    return point.matrixTransform(picture.getScreenCTM().inverse());
  }
  var ranges = {};
  function show(picture, frame) {
    picture.querySelectorAll(".brush").forEach(function (each) { each.remove(); });
    frame.axes.forEach(function (axis, i) {
      var range = ranges[axis.dataset.axis];
      if (!range) return;
      var made = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      made.setAttribute("class", "brush");
      made.setAttribute("x", Number(axis.dataset.x) - 8); made.setAttribute("width", 16);
      made.setAttribute("y", range[0]); made.setAttribute("height", Math.max(1, range[1] - range[0]));
      picture.appendChild(made);
    });
    picture.querySelectorAll("polyline").forEach(function (line) {
      var points = line.getAttribute("points").split(" ");
      var out = frame.axes.some(function (axis, i) {
        var range = ranges[axis.dataset.axis], y = Number(points[i].split(",")[1]);
        return range && (y < range[0] - 0.5 || y > range[1] + 0.5);
      });
      line.classList.toggle("out", out);
    });
  }
  // Of categories a range is one of positions, which two hidden fields hold. The choice of one option gives way to it.
  function fill(form, key, range, frame) {
    var from = form.elements["from." + key], to = form.elements["to." + key], one = form.elements["is." + key];
    var axis = frame.axes.find(function (each) { return each.dataset.axis === key; });
    var ends = JSON.parse(axis.dataset.ends), low = ends[0], high = ends[1], log = ends[2];
    function value(y) {
      var share = (frame.bottom - y) / (frame.bottom - frame.top);
      if (share > 0.995 || share < 0.005) return ""; // an end of the axis is no limit: trials may lie beyond it
      var found = log ? low * Math.pow(high / low, share) : low + share * (high - low);
      return String(Number(found.toPrecision(4)));
    }
    from.value = range ? value(range[1]) : ""; to.value = range ? value(range[0]) : "";
    if (one) one.value = "";
  }
  var begun = null;
  document.addEventListener("pointerdown", function (event) {
    var picture = event.target.closest && event.target.closest("#parallel-picture");
    if (!picture) return;
    var frame = heightsOf(picture), at = place(picture, event), nearest = null;
    frame.axes.forEach(function (axis) {
      var gap = Math.abs(Number(axis.dataset.x) - at.x);
      if (gap < 30 && (!nearest || gap < nearest.gap)) nearest = { axis: axis.dataset.axis, gap: gap };
    });
    if (!nearest) return;
    begun = { picture: picture, frame: frame, axis: nearest.axis, y: at.y };
    event.preventDefault();
  });
  document.addEventListener("pointermove", function (event) {
    if (!begun) return;
    var y = place(begun.picture, event).y;
    ranges[begun.axis] = [Math.min(begun.y, y), Math.max(begun.y, y)];
    show(begun.picture, begun.frame);
  });
  document.addEventListener("pointerup", function (event) {
    if (!begun) return;
    var form = document.getElementById("brush"), range = ranges[begun.axis];
    if (!range || range[1] - range[0] < 3) { delete ranges[begun.axis]; range = null; }
    show(begun.picture, begun.frame);
    fill(form, begun.axis, range, begun.frame);
    form.dispatchEvent(new Event("change", { bubbles: true }));
    begun = null;
  });
  document.addEventListener("reset", function (event) {
    if (event.target.id !== "brush") return;
    ranges = {};
    event.target.querySelectorAll("input[type=hidden]").forEach(function (each) { each.value = ""; });
    var picture = document.getElementById("parallel-picture");
    show(picture, heightsOf(picture));
    document.getElementById("selected").replaceChildren();
  });
})();
