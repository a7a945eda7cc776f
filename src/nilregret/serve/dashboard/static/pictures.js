// Pictures: panels of marks from `data-scene`, drawn on one canvas each. All texts come from the server.
(function () {
  "use strict";
  var RAMPS = { // viridis and cividis
    value: ["#440154", "#443a83", "#31688e", "#20908d", "#35b779", "#8fd744", "#fde725"],
    uncertain: ["#00224e", "#2a3f6d", "#575d6d", "#7d7c78", "#a59c74", "#d2c060", "#fee838"]
  };
  var ROLES = { observed: "dot", best: "best", model: "main", failed: "warn", text: "text", faint: "grid", third: "third" };
  var FONT = "12px system-ui, sans-serif", PAD = { right: 14, top: 8 };
  var zooms = {}, read = {}; // the part of a picture that a reader chose, and where it is read: kept when it is drawn anew

  function style(name) { return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim() || "#888888"; }
  function color(role) { return ROLES[role] ? style(ROLES[role]) : role; }
  function texts(joined) { return joined ? joined.split("\n") : []; }
  function element(tag, attributes, text) {
    var made = document.createElementNS(attributes && attributes.svg ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml", tag);
    Object.keys(attributes || {}).forEach(function (name) { if (name !== "svg") made.setAttribute(name, attributes[name]); });
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // -- axes -------------------------------------------------------------------------------------------------------
  function scaled(axis, value) { return axis.log ? Math.log(value) : value; }
  function span(axis, zoom) { return zoom || axis.limits; }
  function share(axis, value, ends) { return (scaled(axis, value) - scaled(axis, ends[0])) / (scaled(axis, ends[1]) - scaled(axis, ends[0])); }
  function back(axis, part, ends) {
    var low = scaled(axis, ends[0]), at = low + part * (scaled(axis, ends[1]) - low);
    return axis.log ? Math.exp(at) : at;
  }
  function plain(value, digits) { return String(Number(value.toFixed(Math.min(20, digits)))); }
  function ticks(axis, zoom) { // those of the server; of a zoom into numbers, round ones between its ends
    if (!zoom) return axis.ticks;
    var inside = axis.ticks.filter(function (each) { return each[0] >= zoom[0] && each[0] <= zoom[1]; });
    if (inside.length > 2 || axis.log || axis.ticks.some(function (each) { return isNaN(Number(each[1])); })) return inside;
    var power = Math.pow(10, Math.floor(Math.log10((zoom[1] - zoom[0]) / 3))), found = [];
    var step = [5, 2, 1].map(function (digit) { return digit * power; }).find(function (each) { return (zoom[1] - zoom[0]) / each >= 3; });
    if (axis.whole) step = Math.max(1, Math.round(step));
    for (var i = Math.ceil(zoom[0] / step - 1e-9); i * step <= zoom[1] + 1e-9 * step; i++) found.push([i * step, plain(i * step, Math.max(0, 1 - Math.floor(Math.log10(step))))]);
    return found;
  }
  function extent(panel, across) { // of what lies between two places, within the limits of the panel
    var ends = [Infinity, -Infinity];
    panel.marks.forEach(function (mark) {
      if (mark.rule || mark.kind === "boxes" || mark.kind === "words" || mark.kind === "heat") return;
      (mark.kind === "band" ? [mark.low, mark.high] : [mark.y]).forEach(function (values) {
        values.forEach(function (y, i) {
          if (y === null || mark.x[i] < across[0] || mark.x[i] > across[1]) return;
          ends[0] = Math.min(ends[0], y); ends[1] = Math.max(ends[1], y);
        });
      });
    });
    var limits = panel.y.limits;
    ends = [Math.max(ends[0], limits[0]), Math.min(ends[1], limits[1])];
    if (!(ends[1] > ends[0]) || panel.y.log) return limits;
    var room = 0.06 * (ends[1] - ends[0]);
    return [Math.max(limits[0], ends[0] - room), Math.min(limits[1], ends[1] + room)];
  }

  // -- marks ------------------------------------------------------------------------------------------------------
  var SHAPES = {
    o: function (c, x, y, r) { c.arc(x, y, r, 0, 2 * Math.PI); }, O: function (c, x, y, r) { c.arc(x, y, r, 0, 2 * Math.PI); }, s: function (c, x, y, r) { c.rect(x - r, y - r, 2 * r, 2 * r); },
    x: function (c, x, y, r) { c.moveTo(x - r, y - r); c.lineTo(x + r, y + r); c.moveTo(x + r, y - r); c.lineTo(x - r, y + r); },
    "|": function (c, x, y, r) { c.moveTo(x, y - 1.6 * r); c.lineTo(x, y); },
    v: function (c, x, y, r) { c.moveTo(x - r, y - 2 * r); c.lineTo(x + r, y - 2 * r); c.lineTo(x, y); c.closePath(); },
    "^": function (c, x, y, r) { c.moveTo(x - r, y + 2 * r); c.lineTo(x + r, y + 2 * r); c.lineTo(x, y); c.closePath(); },
    d: function (c, x, y, r) { c.moveTo(x - r, y); c.lineTo(x, y - r); c.lineTo(x + r, y); c.lineTo(x, y + r); c.closePath(); },
    "*": function (c, x, y, r) {
      for (var i = 0; i < 10; i++) { var far = i % 2 ? 0.45 * r : r, turn = Math.PI * (i / 5 - 0.5); c[i ? "lineTo" : "moveTo"](x + far * Math.cos(turn), y + far * Math.sin(turn)); }
      c.closePath();
    }
  };
  var DRAW = {
    points: function (c, mark, at) {
      var crowded = mark.x.length > 400, r = Math.max(1.2, 0.65 * mark.size * (crowded && mark.shape === "o" ? 0.6 : 1)), open = "x|O".indexOf(mark.shape) >= 0;
      c.fillStyle = c.strokeStyle = color(mark.color); c.lineWidth = 1.5;
      for (var i = 0; i < mark.x.length; i++) {
        if (mark.x[i] === null || mark.y[i] === null) continue;
        c.globalAlpha = (Array.isArray(mark.opacity) ? mark.opacity[i] : mark.opacity) * (crowded ? 0.65 : 1);
        c.beginPath(); SHAPES[mark.shape](c, at.x(mark.x[i]), at.y(mark.y[i]), r);
        if (open) c.stroke(); else c.fill();
        if (mark.color === "#ffffff" && !open || mark.shape === "*") { c.strokeStyle = mark.shape === "*" ? style("card") : "#000000"; c.lineWidth = 0.8; c.stroke(); c.strokeStyle = color(mark.color); }
      }
    },
    line: function (c, mark, at, faded) {
      c.strokeStyle = color(mark.color); c.lineWidth = 1.3 * mark.width; c.setLineDash(mark.dashed ? [5, 4] : []);
      var start = 0, n = mark.x.length; // one path for each part between gaps, so that parts can fade
      for (var i = 0; i <= n; i++) {
        if (i < n && mark.x[i] !== null && mark.y[i] !== null) continue;
        if (i > start) {
          c.globalAlpha = mark.opacity * (faded && faded(mark, start, i) ? 0.1 : 1);
          c.beginPath();
          for (var j = start; j < i; j++) {
            if (j === start) c.moveTo(at.x(mark.x[j]), at.y(mark.y[j]));
            else { if (mark.steps) c.lineTo(at.x(mark.x[j]), at.y(mark.y[j - 1])); c.lineTo(at.x(mark.x[j]), at.y(mark.y[j])); }
          }
          c.stroke();
        }
        start = i + 1;
      }
    },
    band: function (c, mark, at) {
      c.fillStyle = color(mark.color); c.globalAlpha = mark.opacity; c.beginPath();
      mark.x.forEach(function (x, i) { c[i ? "lineTo" : "moveTo"](at.x(x), at.y(mark.high[i])); });
      for (var i = mark.x.length - 1; i >= 0; i--) c.lineTo(at.x(mark.x[i]), at.y(mark.low[i]));
      c.fill();
    },
    boxes: function (c, mark, at) {
      c.globalAlpha = mark.opacity; c.fillStyle = c.strokeStyle = color(mark.color); c.lineWidth = 1;
      mark.x0.forEach(function (_, i) {
        var x = at.x(mark.x0[i]), y = at.y(mark.y1[i]), w = at.x(mark.x1[i]) - x, h = at.y(mark.y0[i]) - y;
        if (!mark.hatched) { c.fillRect(x, y, w, h); return; }
        c.save(); c.beginPath(); c.rect(x, y, w, h); c.clip(); c.beginPath();
        for (var k = 7 - h - (x + y) % 7; k < w; k += 7) { c.moveTo(x + k, y + h); c.lineTo(x + k + h, y); }
        c.stroke(); c.restore();
      });
    },
    heat: function (c, mark, at) {
      var columns = mark.x.length - 1, ends = reach(mark);
      mark.z.forEach(function (value, i) {
        if (value === null) return;
        var row = Math.floor(i / columns), column = i % columns, x = at.x(mark.x[column]), y = at.y(mark.y[row + 1]);
        c.fillStyle = ramp(mark, ends[1] > ends[0] ? (value - ends[0]) / (ends[1] - ends[0]) : 0.5);
        c.fillRect(x, y, at.x(mark.x[column + 1]) - x + 0.6, at.y(mark.y[row]) - y + 0.6);
      });
    },
    words: function (c, mark, at) {
      c.fillStyle = color(mark.color); c.font = FONT; c.textAlign = mark.right ? "left" : "right"; c.textBaseline = mark.middle ? "middle" : mark.above ? "bottom" : "top";
      var x = at.x(mark.x) + (mark.right ? 6 : -6), y = at.y(mark.y) + (mark.middle ? 0 : mark.above ? -5 : 5);
      c.strokeStyle = style("card"); c.lineWidth = 3; c.lineJoin = "round"; c.strokeText(mark.text, x, y); c.fillText(mark.text, x, y);
    }
  };
  function reach(mark) { return mark.z.reduce(function (ends, value) { return value === null ? ends : [Math.min(ends[0], value), Math.max(ends[1], value)]; }, [Infinity, -Infinity]); }
  function ramp(mark, part) {
    var of = RAMPS[mark.uncertain ? "uncertain" : "value"], at = Math.min(of.length - 1.0001, Math.max(0, part * (of.length - 1))), i = Math.floor(at), rest = at - i;
    function hue(hex, j) { return parseInt(hex.slice(1 + 2 * j, 3 + 2 * j), 16); }
    return "rgb(" + [0, 1, 2].map(function (j) { return Math.round(hue(of[i], j) * (1 - rest) + hue(of[i + 1], j) * rest); }).join(",") + ")";
  }

  // -- a panel ----------------------------------------------------------------------------------------------------
  function paint(c, panel, box, zoom, faded, beside) {
    var x = span(panel.x, zoom.x), y = zoom.y || (zoom.x ? extent(panel, zoom.x) : panel.y.limits), heat = panel.marks.find(function (mark) { return mark.kind === "heat"; });
    c.font = FONT;
    var across = ticks(panel.x, zoom.x), up = ticks(panel.y, y === panel.y.limits ? null : y);
    var wide = Math.max(beside || 0, Math.min(150, Math.max.apply(null, [0].concat(up.map(function (each) { return c.measureText(each[1]).width; })))));
    if (!box) return wide;
    var steep = panel.x.steep ? Math.min(110, Math.max.apply(null, [0].concat(across.map(function (each) { return c.measureText(each[1]).width; })))) : 14 * Math.max.apply(null, [1].concat(across.map(function (each) { return texts(each[1]).length; })));
    var left = (panel.y.label ? 20 : 2) + wide + 10, right = PAD.right + (heat ? 84 : 0), top = PAD.top;
    var frame = { left: box.left + left, top: box.top + top, width: box.width - left - right, height: box.height - top - steep - 8 - (panel.x.label ? 18 : 0), x: x, y: y };
    var at = {
      x: function (value) { return frame.left + share(panel.x, value, x) * frame.width; },
      y: function (value) { return frame.top + (1 - share(panel.y, value, y)) * frame.height; }
    };
    var bottom = frame.top + frame.height;
    c.strokeStyle = style("grid"); c.lineWidth = 1; c.fillStyle = style("dim"); c.setLineDash([]);
    c.textAlign = "center"; c.textBaseline = "top";
    var last = -Infinity;
    across.forEach(function (each) {
      var place = at.x(each[0]), half = Math.max.apply(null, texts(each[1]).concat("").map(function (line) { return c.measureText(line).width; })) / 2;
      if (place < frame.left - 1 || place > frame.left + frame.width + 1) return;
      if (panel.x.grid) { c.beginPath(); c.moveTo(place, frame.top); c.lineTo(place, bottom); c.stroke(); }
      if (panel.x.steep) { c.save(); c.translate(place, bottom + 6); c.rotate(-Math.PI / 2); c.textAlign = "right"; c.textBaseline = "middle"; c.fillText(clipped(c, each[1], steep), 0, 0); c.restore(); return; }
      if (place - half < last + 4) return; // words that would touch are left out
      last = place + half;
      texts(each[1]).forEach(function (line, i) { c.fillText(line, Math.min(place, box.left + box.width - half), bottom + 6 + 14 * i); });
    });
    c.textAlign = "right"; c.textBaseline = "middle";
    up.forEach(function (each) {
      var place = at.y(each[0]);
      if (place < frame.top - 1 || place > bottom + 1) return;
      if (panel.y.grid) { c.beginPath(); c.moveTo(frame.left, place); c.lineTo(frame.left + frame.width, place); c.stroke(); }
      c.fillText(clipped(c, each[1], wide), frame.left - 6, place);
    });
    if (panel.framed) { c.strokeStyle = style("dim"); c.beginPath(); c.moveTo(frame.left, frame.top); c.lineTo(frame.left, bottom); c.lineTo(frame.left + frame.width, bottom); c.stroke(); }
    c.textAlign = "center"; c.textBaseline = "bottom";
    if (panel.x.label) c.fillText(clipped(c, panel.x.label, frame.width), frame.left + frame.width / 2, box.top + box.height);
    if (panel.y.label) { c.save(); c.translate(box.left + 12, frame.top + frame.height / 2); c.rotate(-Math.PI / 2); c.textBaseline = "middle"; c.fillText(clipped(c, panel.y.label, frame.height), 0, 0); c.restore(); }
    c.save(); c.beginPath(); c.rect(frame.left, frame.top - 1, frame.width + 1, frame.height + 2); if (panel.framed) c.clip();
    panel.marks.slice().sort(function (a, b) { return (a.kind === "words") - (b.kind === "words"); }).forEach(function (mark) { c.save(); DRAW[mark.kind](c, mark, at, faded); c.restore(); });
    c.restore();
    if (heat) scale(c, heat, frame);
    return Object.assign(frame, { at: at, value: function (px, py) { return [back(panel.x, (px - frame.left) / frame.width, x), back(panel.y, 1 - (py - frame.top) / frame.height, y)]; } });
  }
  function clipped(c, text, room) {
    while (text.length > 4 && c.measureText(text).width > room + 1) text = text.slice(0, -2).replace(/\u2026$/, "") + "\u2026";
    return text;
  }
  function scale(c, mark, frame) {
    var ends = reach(mark), left = frame.left + frame.width + 10;
    for (var i = 0; i < 60; i++) { c.fillStyle = ramp(mark, 1 - i / 59); c.fillRect(left, frame.top + i * frame.height / 60, 12, frame.height / 60 + 0.6); }
    c.fillStyle = style("dim"); c.textAlign = "left"; c.textBaseline = "middle"; c.font = FONT;
    mark.ticks.forEach(function (each) { c.fillText(each[1], left + 18, frame.top + (1 - (ends[1] > ends[0] ? (each[0] - ends[0]) / (ends[1] - ends[0]) : 0.5)) * frame.height); });
  }

  // -- what is read -----------------------------------------------------------------------------------------------
  function before(xs, x) { // the last place that is not after x, of places in order
    var low = 0, high = xs.length;
    while (low < high) { var middle = (low + high) >> 1; if (xs[middle] !== null && xs[middle] <= x) low = middle + 1; else high = middle; }
    return low - 1;
  }
  function written(value) { // as it was sent; sizes that the server spells with a power of ten have one
    if (value === null || value === undefined) return "-";
    var size = Math.abs(value), parts = value.toExponential().split("e");
    return value && (size < 1e-4 || size >= 1e7) ? parts[0] + "e" + Number(parts[1]) : String(value);
  }
  function across(mark) { return mark.kind === "boxes" ? mark.x0.map(function (start, i) { return Number(((start + mark.x1[i]) / 2).toPrecision(6)); }) : mark.x; }
  function stopsOf(panel) { // the places that have words, else those of points and bands, else of lines
    if (panel.places.length) return panel.places;
    var of = panel.marks.filter(function (mark) { return mark.read || mark.kind === "points" && mark.hover; }), apart = of.filter(function (mark) { return mark.kind !== "line"; });
    var all = [].concat.apply([], (apart.length ? apart : of).map(across)).filter(function (x) { return x !== null; });
    return Array.from(new Set(all)).sort(function (a, b) { return a - b; });
  }
  function reading(panels, stops, i) {
    var first = panels[0], x = stops[i], said = texts(first.said), parts = [(first.x.name + " " + (said.length ? said[i] : written(x))).trim()];
    panels.forEach(function (panel) {
      panel.marks.forEach(function (mark) {
        if (mark.rule) { if (mark.hover && mark.x[0] === mark.x[1] && Math.abs(mark.x[0] - x) <= 1) parts.push(mark.hover); return; }
        if (mark.hover && mark.kind === "points") { var index = mark.x.indexOf(x), words = texts(mark.hover)[index]; if (index >= 0) parts.push(mark.label && words !== mark.label ? mark.label + " " + words : words); }
        if (!mark.read) return;
        var at = mark.kind === "line" && mark.steps ? before(mark.x, x) : across(mark).indexOf(x);
        if (at < 0 || mark.y && mark.y[at] === null) return;
        parts.push(mark.label + " " + (mark.y ? written(mark.y[at]) : written((mark.low || mark.y0)[at]) + " to " + written((mark.to || mark.high || mark.y1)[at])));
      });
    });
    return parts.join("; ");
  }
  function cell(panel, mark, at) {
    var columns = mark.x.length - 1;
    return panel.x.label + " " + texts(mark.across)[at[0]] + "; " + panel.y.label + " " + texts(mark.up)[at[1]] + "; " + mark.label + " " + written(mark.z[at[1] * columns + at[0]]);
  }

  // -- a picture --------------------------------------------------------------------------------------------------
  function Drawing(node) {
    var scene = JSON.parse(node.getAttribute("data-scene")), panels = scene.panels, id = node.id, self = this;
    var home = node.closest("figure"), readout = home.querySelector(".readout"), canvas = element("canvas"), selection = element("div", { "class": "selection", hidden: "" });
    var zoom = zooms[id] || (zooms[id] = { x: null, y: {} }), last = panels[panels.length - 1];
    var width = node.clientWidth, height = Math.max(200, node.clientHeight), frames = [], drag = null;
    panels.forEach(function (panel) { panel.x.name = panel.x.label || last.x.label; });
    var heat = panels[0].marks.find(function (mark) { return mark.kind === "heat"; }), stops = stopsOf(panels[0]);
    var bars = heat || stops.length ? null : panels[0].marks.find(function (mark) { return mark.kind === "boxes" && mark.hover; });
    var count = bars ? bars.x0.length : stops.length, at = kept();
    function kept() { return !(id in read) ? null : heat || bars ? read[id] : Math.max(0, before(stops, read[id])); } // a place keeps, as its number may change
    this.faded = null;
    node.replaceChildren(canvas, selection);
    this.draw = function (wide) {
      width = wide || width;
      var ratio = window.devicePixelRatio || 1, c = canvas.getContext("2d"), sum = panels.reduce(function (all, each) { return all + each.height; }, 0), top = 0;
      canvas.width = Math.max(200, width) * ratio; canvas.height = height * ratio;
      canvas.style.width = Math.max(200, width) + "px"; canvas.style.height = height + "px";
      c.scale(ratio, ratio);
      function ends(i) { return { x: zoom.x, y: zoom.y[i] || null }; }
      var beside = Math.max.apply(null, panels.map(function (panel, i) { return paint(c, panel, null, ends(i)); })); // panels have one left side
      frames = panels.map(function (panel, i) {
        var box = { left: 0, top: top, width: Math.max(200, width), height: height * panel.height / sum };
        top += box.height;
        return paint(c, panel, box, ends(i), self.faded, beside);
      });
      if (at !== null) cursor(c);
    };
    this.frames = function () { return frames; };
    function cursor(c) {
      c.strokeStyle = style("focus"); c.lineWidth = 1;
      if (heat) {
        var frame = frames[0], x = frame.at.x(heat.x[at[0]]), y = frame.at.y(heat.y[at[1] + 1]);
        c.strokeStyle = "#ffffff"; c.lineWidth = 2; c.strokeRect(x, y, frame.at.x(heat.x[at[0] + 1]) - x, frame.at.y(heat.y[at[1]]) - y);
      } else if (bars) {
        var of = frames[0];
        c.strokeRect(of.left, of.at.y(bars.y1[at]), of.width, of.at.y(bars.y0[at]) - of.at.y(bars.y1[at]));
      } else frames.forEach(function (frame) {
        var x = frame.at.x(stops[at]);
        if (x >= frame.left && x <= frame.left + frame.width) { c.beginPath(); c.moveTo(x, frame.top); c.lineTo(x, frame.top + frame.height); c.stroke(); }
      });
    }
    function tell(next) {
      at = next; self.draw();
      readout.textContent = at === null ? "" : said();
    }
    function said() { return heat ? cell(panels[0], heat, at) : bars ? texts(bars.hover)[at] : reading(panels, stops, at); }
    function frameAt(y) { return Math.max(0, frames.findIndex(function (frame) { return y <= frame.top + frame.height + 30; })); }
    function nearest(px, py) {
      if (!frames.length) return null;
      var i = frameAt(py), frame = frames[i], value = frame.value(px, py);
      if (px < frame.left || px > frame.left + frame.width) return null;
      if (heat) {
        var column = before(heat.x, value[0]), up = before(heat.y, value[1]);
        return column >= 0 && column < heat.x.length - 1 && up >= 0 && up < heat.y.length - 1 ? [column, up] : null;
      }
      if (bars) { var row = bars.y0.findIndex(function (low, j) { return value[1] >= low && value[1] <= bars.y1[j]; }); return row < 0 ? null : row; }
      if (!count) return null;
      var under = before(stops, value[0]);
      return under < 0 ? 0 : under + 1 < stops.length && frame.at.x(stops[under + 1]) - px < px - frame.at.x(stops[under]) ? under + 1 : under;
    }
    // zoom: a drag across, up or both; a double click, the button and 0 show all again
    var reset = element("button", { type: "button", "class": "plain reset" }, "Show all again");
    reset.onclick = function () { zoom.x = null; zoom.y = {}; zoomed(); node.focus(); };
    function zoomed() {
      reset.hidden = !(zoom.x || Object.keys(zoom.y).length);
      if (!reset.parentNode) readout.before(reset);
      if (!finer(node, scene, zoom.x)) self.draw();
    }
    function named(axis) { return axis.ticks.some(function (each) { return isNaN(Number(each[1].replace("%", ""))); }); }
    canvas.onpointerdown = function (event) {
      if (event.pointerType !== "mouse" || event.button || node.hasAttribute("data-brush")) return;
      drag = { x: event.offsetX, y: event.offsetY, panel: frameAt(event.offsetY) };
      canvas.setPointerCapture(event.pointerId);
    };
    canvas.onpointermove = function (event) {
      if (!drag) {
        var next = nearest(event.offsetX, event.offsetY);
        if (String(next) !== String(at)) tell(next);
        return;
      }
      var part = selected(event);
      selection.hidden = false;
      Object.assign(selection.style, { left: part.left + "px", top: part.top + "px", width: part.width + "px", height: part.height + "px" });
    };
    function selected(event) { // the part along x, y, or both
      var frame = frames[drag.panel], wide = Math.abs(event.offsetX - drag.x), tall = Math.abs(event.offsetY - drag.y);
      var across = wide >= 24 || wide >= tall, up = tall >= 24 || tall > wide;
      function within(value, low, size) { return Math.min(low + size, Math.max(low, value)); }
      var xs = [drag.x, event.offsetX].map(function (v) { return within(v, frame.left, frame.width); }).sort(function (a, b) { return a - b; });
      var ys = [drag.y, event.offsetY].map(function (v) { return within(v, frame.top, frame.height); }).sort(function (a, b) { return a - b; });
      if (!across || named(panels[drag.panel].x)) xs = [frame.left, frame.left + frame.width];
      if (!up) ys = [frame.top, frame.top + frame.height];
      return { left: xs[0], top: ys[0], width: xs[1] - xs[0], height: ys[1] - ys[0], across: across && !named(panels[drag.panel].x), up: up };
    }
    canvas.onpointerup = function (event) {
      if (!drag) return;
      var part = selected(event), i = drag.panel, frame = frames[i], moved = Math.max(Math.abs(event.offsetX - drag.x), Math.abs(event.offsetY - drag.y)) > 4;
      drag = null; selection.hidden = true;
      if (!moved) return;
      var low = frame.value(part.left, part.top + part.height), high = frame.value(part.left + part.width, part.top);
      if (part.across) zoom.x = [low[0], high[0]];
      if (part.up) zoom.y[i] = [low[1], high[1]];
      zoomed();
    };
    canvas.onmouseleave = function () { tell(document.activeElement === node ? kept() : null); };
    canvas.ondblclick = reset.onclick;
    function closer(factor) {
      var axis = panels[0].x, now = span(axis, zoom.x), middle = at !== null && !heat && !bars ? stops[at] : (now[0] + now[1]) / 2, half = (now[1] - now[0]) / 2 * factor;
      zoom.x = [Math.max(axis.limits[0], middle - half), Math.min(axis.limits[1], middle + half)];
      if (zoom.x[0] === axis.limits[0] && zoom.x[1] === axis.limits[1]) zoom.x = null;
      zoomed();
    }
    node.onkeydown = function (event) {
      var key = event.key, step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[key], next;
      function inside(value, count) { return Math.min(count - 1, Math.max(0, value)); }
      if ((key === "+" || key === "-") && !panels[0].x.log && !named(panels[0].x)) { event.preventDefault(); closer(key === "+" ? 0.5 : 2); return; }
      if (key === "0") { event.preventDefault(); reset.onclick(); return; }
      if (heat && step) next = at ? [inside(at[0] + step[0], heat.x.length - 1), inside(at[1] + step[1], heat.y.length - 1)] : start();
      else if (!heat && count && key === "Home") next = 0;
      else if (!heat && count && key === "End") next = count - 1;
      else if (!heat && count && step && (bars || step[0])) next = at === null ? (step[0] < 0 ? count - 1 : 0) : inside(at + (bars && step[1] ? step[1] : step[0]) * (event.shiftKey ? 10 : 1), count);
      else return;
      event.preventDefault();
      read[id] = heat || bars ? next : stops[next];
      tell(next);
    };
    function start() { // the best point, if it is drawn
      var star = panels[0].marks.find(function (mark) { return mark.shape === "*"; });
      return star ? [Math.max(0, before(heat.x, star.x[0])), Math.max(0, before(heat.y, star.y[0]))] : [0, 0];
    }
    if (at !== null && !heat) at = count ? Math.min(at, count - 1) : null;
    if (zoom.x || Object.keys(zoom.y).length) readout.before(reset);
    this.draw();
    readout.textContent = at !== null && document.activeElement === node ? said() : "";
  }
  function finer(node, scene, range) {
    // A thinned picture is asked for again between two places, and asks for these at every later renewal.
    var home = node.closest("[data-finer]");
    if (!home || !(node.hasAttribute("data-thinned") || home.hasAttribute("data-between")) || !window.htmx) return false;
    var base = home.getAttribute("data-finer");
    if (range) home.setAttribute("data-between", ""); else home.removeAttribute("data-between");
    home.setAttribute("hx-get", range ? base + "?from=" + Math.max(0, Math.floor(range[0])) + "&to=" + Math.max(0, Math.ceil(range[1])) : base);
    window.htmx.process(home);
    window.htmx.ajax("GET", home.getAttribute("hx-get"), { target: home, swap: "innerHTML" });
    return true;
  }

  // -- legends ----------------------------------------------------------------------------------------------------
  function legend(scene) {
    var list = element("ul", { "class": "legend", "aria-hidden": "true" }), seen = {};
    scene.panels.forEach(function (panel) {
      panel.marks.forEach(function (mark) {
        if (!mark.label || seen[mark.label]) return;
        seen[mark.label] = true;
        var item = element("li"), sample = element("canvas", { width: 44, height: 24, "class": "key" }), c = sample.getContext("2d");
        c.scale(2, 2); c.fillStyle = c.strokeStyle = color(mark.color);
        if (mark.kind === "heat") for (var i = 0; i < 22; i++) { c.fillStyle = ramp(mark, i / 21); c.fillRect(i, 1, 1.5, 10); }
        else if (mark.kind === "line") { c.lineWidth = 2; c.setLineDash(mark.dashed ? [4, 3] : []); c.globalAlpha = Math.max(0.5, mark.opacity); c.beginPath(); c.moveTo(1, 6); c.lineTo(21, 6); c.stroke(); }
        else if (mark.kind === "points") DRAW.points(c, Object.assign({}, mark, { x: [1], y: [1], opacity: 0.8, size: Math.min(9, Math.max(5, mark.size)) }), { x: function () { return 11; }, y: function () { return mark.shape === "|" || mark.shape === "v" ? 11 : mark.shape === "^" ? 1 : 6; } });
        else DRAW.boxes(c, Object.assign({ hatched: false }, mark, { x0: [1], x1: [21], y0: [11], y1: [1] }), { x: Number, y: Number });
        item.append(sample, document.createTextNode(mark.label));
        list.appendChild(item);
      });
    });
    return list;
  }

  function png(node, title) { // with its title, on the ground of the page
    var link = element("button", { type: "button", "class": "plain png", "aria-label": title + " as PNG" }, "PNG");
    link.onclick = function () {
      var from = node.querySelector("canvas"), ratio = window.devicePixelRatio || 1, made = element("canvas"), c = made.getContext("2d");
      made.width = from.width; made.height = from.height + 28 * ratio;
      c.fillStyle = style("card"); c.fillRect(0, 0, made.width, made.height);
      c.fillStyle = style("text"); c.font = 14 * ratio + "px system-ui, sans-serif"; c.fillText(title, 8 * ratio, 19 * ratio);
      c.drawImage(from, 0, 28 * ratio);
      made.toBlob(function (blob) {
        var file = element("a", { href: URL.createObjectURL(blob), download: title + ".png" });
        file.click();
        setTimeout(function () { URL.revokeObjectURL(file.href); }, 1000);
      });
    };
    return link;
  }

  // -- all of them ------------------------------------------------------------------------------------------------
  function draw(node) {
    var home = node.closest("figure");
    home.querySelectorAll(".legend, .reset").forEach(function (each) { each.remove(); });
    var drawing = node.drawing = new Drawing(node), width = node.clientWidth;
    var made = legend(JSON.parse(node.getAttribute("data-scene"))), group = node.closest(".pictures"), first = group && group.querySelector(".legend");
    if (!first || first.textContent !== made.textContent || first.closest("figure") === home) home.querySelector(".readout").before(made); // pictures side by side share one
    if (node.watch) node.watch.disconnect();
    node.watch = new ResizeObserver(function () {
      if (node.clientWidth && node.clientWidth !== width) { width = node.clientWidth; drawing.draw(width); }
    });
    node.watch.observe(node);
    if (!home.querySelector(".png")) home.appendChild(png(node, node.getAttribute("data-title")));
    node.setAttribute("data-drawn", "");
    node.dispatchEvent(new Event("drawn", { bubbles: true }));
  }
  window.nilregretPictures = function (root) { root.querySelectorAll("[data-scene]:not([data-drawn])").forEach(draw); };
  document.addEventListener("theme-changed", function () { document.querySelectorAll("[data-drawn]").forEach(draw); });
  window.nilregretPictures(document);
  window.requestAnimationFrame(function () { window.performance.mark("nilregret-first-picture"); });
})();
