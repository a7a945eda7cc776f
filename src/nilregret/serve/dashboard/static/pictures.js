// Pictures: figures whose data are in an attribute, drawn on canvases. Lines by uPlot, the rest by hand.
(function () {
  "use strict";
  var RAMP = ["#30123b", "#35478f", "#1f7aa0", "#1fa187", "#5ec962", "#b8de29", "#fde725"];

  var zooms = {}; // the part of each picture that a reader has chosen, which stays where it is drawn anew
  var read = {}; // how far each picture has been read by the arrow keys, which goes on where it is drawn anew

  function color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim() || "#888888";
  }
  function faint(name, share) {
    var hex = color(name).replace("#", "");
    var parts = [0, 2, 4].map(function (i) { return parseInt(hex.slice(i, i + 2), 16); });
    return "rgba(" + parts.join(",") + "," + share + ")";
  }
  function said(value) { // as `numeral` of the server
    if (value === null || value === undefined) return "not known";
    if (typeof value !== "number") return String(value);
    var size = Math.abs(value), parts = value.toExponential(3).split("e");
    if (size && (size >= 1e7 || Number(parts[1]) < -4)) return Number(parts[0]) + "e" + Number(parts[1]);
    return String(size >= 9999.5 ? Math.round(value) : Number(value.toPrecision(4)));
  }
  window.nilregretSaid = said;
  function element(tag, attributes, text) {
    var made = document.createElementNS(tag === "svg" || attributes && attributes.svg ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml", tag);
    Object.keys(attributes || {}).forEach(function (name) { if (name !== "svg") made.setAttribute(name, attributes[name]); });
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // -- legends ----------------------------------------------------------------------------------------------------
  function key(kind, name, hue, depth) {
    var item = element("li"), svg = element("svg", { viewBox: "0 0 22 12", "aria-hidden": "true" });
    var shapes = {
      line: ["path", { d: "M1 6H21", stroke: hue, "stroke-width": 2.5, fill: "none" }],
      band: ["rect", { x: 1, y: 1, width: 20, height: 10, fill: hue, opacity: Math.min(0.75, 0.22 * (1 + (depth || 0))) }],
      dot: ["circle", { cx: 11, cy: 6, r: 3.5, fill: hue }],
      ring: ["circle", { cx: 11, cy: 6, r: 3.5, fill: "none", stroke: hue, "stroke-width": 1.5 }],
      faded: ["circle", { cx: 11, cy: 6, r: 3.5, fill: hue, opacity: 0.4 }],
      bar: ["rect", { x: 7, y: 3, width: 8, height: 9, fill: hue, opacity: 0.4 }],
      cross: ["path", { d: "M7 2L15 10M15 2L7 10", stroke: hue, "stroke-width": 2 }],
      tick: ["path", { d: "M11 1V11", stroke: hue, "stroke-width": 2.5 }],
      mark: ["path", { d: "M11 0V12", stroke: hue, "stroke-width": 1.5, "stroke-dasharray": "3 2" }],
      rule: ["path", { d: "M1 6H21", stroke: hue, "stroke-width": 1.5, "stroke-dasharray": "3 2" }]
    };
    var shape = shapes[kind];
    shape[1].svg = true;
    svg.appendChild(element(shape[0], shape[1]));
    item.appendChild(svg);
    item.appendChild(document.createTextNode(name));
    return item;
  }
  function legend(picture) {
    var list = element("ul", { "class": "legend", "aria-hidden": "true" }), seen = {};
    function add(kind, name, hue, depth) {
      if (!name || seen[kind + name]) return;
      seen[kind + name] = true;
      list.appendChild(key(kind, name, hue, depth));
    }
    picture.dots.forEach(function (each) { if (each.x.length) add(each.shape, each.name, color(each.color)); });
    picture.layers.forEach(function (layer) {
      layer.series.forEach(function (each) { if (each.style !== "hidden") add(picture.discrete ? "dot" : "line", each.name, color(each.color)); });
    });
    picture.bands.forEach(function (band, i) { add("band", band.name || picture.layers[band.layer].series[band.low].name, color(band.color), picture.cropped ? i : 0); });
    if (picture.marks.length) add("mark", "started anew", color("third"));
    if (picture.zero) add("rule", picture.zero, color("dim"));
    if (picture.here !== null && picture.here !== undefined) add("mark", picture.here_name, color("best"));
    return list;
  }

  // -- lines ------------------------------------------------------------------------------------------------------
  function joined(picture) {
    if (!picture.layers.length) {
      var xs = Array.from(new Set([].concat.apply([], picture.dots.map(function (each) { return each.x; })))).sort(function (a, b) { return a - b; });
      return [xs, xs.map(function () { return null; })];
    }
    var layer = picture.layers[0];
    return [layer.x].concat(layer.series.map(function (each) { return each.values; }));
  }
  function span(values) {
    return values.reduce(function (ends, value) { return [Math.min(ends[0], value), Math.max(ends[1], value)]; }, [Infinity, -Infinity]);
  }
  function extent(picture, low, high) {
    // Of everything within the view; of bands the inner part where they would dwarf the rest.
    var values = [], borders = [];
    function take(x, y, into) { if (y !== null && x >= low && x <= high) into.push(y); }
    picture.layers.forEach(function (layer) {
      layer.series.forEach(function (each) { for (var i = 0; i < layer.x.length; i++) take(layer.x[i], each.values[i], each.style === "hidden" ? borders : values); });
    });
    picture.dots.forEach(function (each) {
      if (each.shape !== "tick" && each.shape !== "bar") for (var i = 0; i < each.x.length; i++) take(each.x[i], each.y[i], values);
    });
    if (picture.zero) values.push(0);
    var ends = span(values.length ? values : borders), wide = span(borders), room = picture.cropped && ends[1] - ends[0] || Infinity;
    if (!values.length && !borders.length) return [0, 1];
    var least = Math.min(ends[0], Math.max(wide[0], ends[0] - room)), most = Math.max(ends[1], Math.min(wide[1], ends[1] + room));
    var margin = (most - least) * 0.06 || Math.abs(most) * 0.1 || 1;
    return [least - margin, most + margin];
  }
  function drawDots(u, picture) {
    var ctx = u.ctx, ratio = devicePixelRatio || 1, box = u.bbox;
    picture.dots.forEach(function (each) {
      var crowded = each.x.length > 400, size = (crowded ? 1.4 : 2.6) * ratio;
      ctx.fillStyle = ctx.strokeStyle = each.shape === "dot" && crowded ? faint(each.color, 0.65) : color(each.color);
      ctx.lineWidth = 1.5 * ratio;
      if (each.shape === "bar") { drawBars(u, each); return; }
      for (var i = 0; i < each.x.length; i++) {
        if (each.x[i] === null) continue;
        var x = u.valToPos(each.x[i], "x", true);
        if (x < box.left - 1 || x > box.left + box.width + 1) continue;
        if (each.shares) ctx.fillStyle = faint(each.color, each.shares[i]);
        if (each.shape === "tick") {
          ctx.globalAlpha = 0.55;
          ctx.fillRect(x - 0.75 * ratio, box.top + box.height - 9 * ratio, 1.5 * ratio, 9 * ratio);
          ctx.globalAlpha = 1;
          continue;
        }
        var y = u.valToPos(each.y[i], "y", true);
        ctx.beginPath();
        if (each.shape === "cross") {
          var arm = size * 1.2;
          ctx.moveTo(x - arm, y - arm); ctx.lineTo(x + arm, y + arm); ctx.moveTo(x + arm, y - arm); ctx.lineTo(x - arm, y + arm);
          ctx.stroke();
        } else {
          ctx.arc(x, y, size, 0, 2 * Math.PI);
          if (each.shape === "ring") ctx.stroke(); else ctx.fill();
        }
      }
    });
  }
  function drawBars(u, each) {
    // Of how often something was chosen: the tallest has a fifth of the height.
    var ctx = u.ctx, box = u.bbox, most = Math.max.apply(null, each.y), width = Math.max(2, Math.min(24 * (devicePixelRatio || 1), 0.7 * box.width / each.wide));
    ctx.fillStyle = faint(each.color, 0.35);
    for (var i = 0; i < each.x.length; i++) {
      var height = Math.max(2, 0.2 * box.height * each.y[i] / most);
      ctx.fillRect(u.valToPos(each.x[i], "x", true) - width / 2, box.top + box.height - height, width, height);
    }
  }
  function rule(u, x0, y0, x1, y1, hue) {
    var ctx = u.ctx, ratio = devicePixelRatio || 1;
    ctx.save();
    ctx.strokeStyle = hue; ctx.lineWidth = 1.5 * ratio; ctx.setLineDash([5 * ratio, 4 * ratio]);
    ctx.beginPath(); ctx.moveTo(x0, y0); ctx.lineTo(x1, y1); ctx.stroke();
    ctx.restore();
  }
  function drawRules(u, picture) {
    var box = u.bbox, right = box.left + box.width, bottom = box.top + box.height;
    function vertical(value, hue) {
      var x = u.valToPos(value, "x", true);
      if (x >= box.left && x <= right) rule(u, x, box.top, x, bottom, hue);
    }
    if (picture.zero) {
      var y = u.valToPos(0, "y", true);
      if (y >= box.top && y <= bottom) rule(u, box.left, y, right, y, color("dim"));
    }
    picture.marks.forEach(function (mark) { vertical(mark.x, color("third")); });
    if (picture.here !== null && picture.here !== undefined) vertical(picture.here, color("best"));
  }
  function drawWhiskers(u, picture) {
    // Where there is nothing between the places, bounds are whiskers and no band.
    var ctx = u.ctx, ratio = devicePixelRatio || 1, layer = picture.layers[0];
    ctx.strokeStyle = ctx.fillStyle = color("main");
    for (var i = 0; i < layer.x.length; i++) {
      var x = u.valToPos(layer.x[i], "x", true), up = layer.series.map(function (each) { return u.valToPos(each.values[i], "y", true); });
      picture.bands.forEach(function (band, j) { // the narrower the band, the wider its line
        ctx.lineWidth = 2 * (j + 1) * ratio;
        ctx.beginPath(); ctx.moveTo(x, up[band.low]); ctx.lineTo(x, up[band.high]); ctx.stroke();
      });
      ctx.fillRect(x - 4 * ratio, up[2] - 4 * ratio, 8 * ratio, 8 * ratio);
    }
  }
  function place(picture, x) {
    if (picture.x.names) return picture.x.names[Math.round(x)] || "";
    return said(x);
  }
  function spot(picture, x, i) {
    return picture.x.said ? picture.x.said[i] : picture.x.label + " " + place(picture, x);
  }
  function reading(picture, data, i) {
    var x = data[0][i], parts = [spot(picture, x, i)];
    if (picture.layers.length) {
      picture.layers[0].series.forEach(function (each) { if (each.style !== "hidden") parts.push(each.name + " " + said(each.values[i])); });
      picture.bands.forEach(function (band) {
        var series = picture.layers[0].series;
        parts.push(series[band.low].name + " " + said(series[band.low].values[i]) + " to " + said(series[band.high].values[i]));
      });
    }
    picture.dots.forEach(function (each) {
      var at = each.shape === "tick" || each.shape === "bar" ? -1 : each.x.indexOf(x);
      if (at >= 0) parts.push(each.name + " " + said(each.y[at]));
    });
    picture.marks.forEach(function (mark) { if (Math.abs(mark.x - x) <= 1) parts.push(mark.label); });
    return parts.join("; ");
  }
  function ticks(values) { return values.map(function (value) { return value === null ? "" : said(value); }); }
  function powers(low, high) {
    // Places of a logarithmic axis that a person would name: powers of ten, else 1, 2, 5, else round steps between.
    var found = [];
    [[1], [1, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9]].some(function (digits) {
      found = [];
      for (var i = Math.floor(Math.log10(low)); i <= Math.ceil(Math.log10(high)); i++) {
        digits.forEach(function (digit) { var at = Number(digit + "e" + i); if (at >= low && at <= high) found.push(at); });
      }
      return found.length > 2;
    });
    if (found.length < 2) return rounded(low, high);
    var every = Math.max(1, Math.ceil(found.length / 8));
    return found.filter(function (_, i) { return i % every === 0; });
  }
  function rounded(low, high) {
    // Three to seven places of a linear axis, in steps of 1, 2 or 5 times a power of ten.
    if (!(high > low)) return [low];
    var power = Math.pow(10, Math.floor(Math.log10((high - low) / 3))), found = [];
    var step = [5, 2, 1].map(function (digit) { return digit * power; }).find(function (each) { return (high - low) / each >= 3; });
    for (var i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(Number((i * step).toPrecision(12)));
    return found;
  }
  function axes(picture) {
    var look = { stroke: color("dim"), grid: { stroke: color("grid"), width: 1 }, ticks: { stroke: color("grid"), width: 1 }, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", labelSize: 18 };
    var across = Object.assign({}, look, { label: picture.x.label, size: 34, values: function (_, splits) { return ticks(splits); } });
    if (picture.x.names) {
      across.splits = function () { return picture.x.names.map(function (_, i) { return i; }); };
      across.values = function (_, splits) { return splits.map(function (i) { var name = picture.x.names[i] || ""; return name.length > 14 ? name.slice(0, 13) + "\u2026" : name; }); };
    } else if (picture.x.log) {
      across.splits = function (u) { return powers(u.scales.x.min, u.scales.x.max); };
      across.filter = function (_, splits) { return splits; };
    }
    if (picture.x.whole) across.incrs = [1, 2, 5, 1e1, 2e1, 5e1, 1e2, 2e2, 5e2, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7];
    function room(_, values) { // as wide as the longest tick
      var most = Math.max.apply(null, (values || [""]).map(function (value) { return value.length; }));
      return Math.min(130, Math.max(58, 24 + 7 * most));
    }
    var up = Object.assign({}, look, { label: picture.y.label, size: room, values: function (_, splits) { return ticks(splits); } });
    return [across, up];
  }
  function lines(node, picture, readout) {
    var data = joined(picture), whiskers = picture.discrete && picture.layers.length;
    var series = [{}].concat(picture.layers.length ? picture.layers[0].series.map(function (each) {
      var hidden = each.style === "hidden" || whiskers;
      var paths = each.style === "step" ? { paths: uPlot.paths.stepped({ align: 1 }) } : {};
      return Object.assign(paths, { label: each.name, stroke: hidden ? "transparent" : color(each.color), width: hidden ? 0 : 2, points: { show: false }, spanGaps: true });
    }) : [{ show: false }]);
    var bands = whiskers ? [] : picture.bands.map(function (band) {
      return { series: [band.high + 1, band.low + 1], fill: faint(band.color, 0.18) };
    });
    var xs = data[0], ends = [xs[0], xs[xs.length - 1]];
    picture.dots.forEach(function (each) {
      each.x.forEach(function (x) { if (x !== null) { ends[0] = Math.min(ends[0], x); ends[1] = Math.max(ends[1], x); } });
    });
    var pad = picture.x.names ? 0.5 : picture.discrete ? (ends[1] - ends[0]) * 0.04 || 1 : (ends[1] - ends[0]) * 0.01 || 1;
    var range = picture.x.log ? [ends[0] / 1.05, ends[1] * 1.05] : [ends[0] - pad, ends[1] + pad];
    var height = Math.max(200, node.clientHeight), id = node.id + picture.title, zoom = zooms[id] || (zooms[id] = { x: null, y: null });
    var reset = element("button", { type: "button", "class": "plain reset" }, "Show all again");
    reset.onclick = function () { zoom.x = zoom.y = null; zoomed(); node.focus(); };
    function zoomed() {
      reset.hidden = !(zoom.x || zoom.y);
      if (node.parentNode && !reset.parentNode) node.after(reset);
      if (finer(node, picture, zoom.x)) return; // more detail comes from the server
      plot.setScale("x", { min: (zoom.x || range)[0], max: (zoom.x || range)[1] });
      plot.redraw(true, true);
    }
    function closer(factor) {
      var now = zoom.x || range, middle = at >= 0 ? xs[at] : (now[0] + now[1]) / 2, half = (now[1] - now[0]) / 2 * factor;
      zoom.x = [Math.max(range[0], middle - half), Math.min(range[1], middle + half)];
      if (zoom.x[0] === range[0] && zoom.x[1] === range[1]) zoom.x = null;
      zoomed();
    }
    var plot = new uPlot({
      width: Math.max(200, node.clientWidth), height: height, series: series, bands: bands, axes: axes(picture),
      legend: { show: false }, cursor: { y: false, drag: { x: !picture.x.names, y: true, uni: 24, setScale: false } },
      scales: {
        x: { time: false, distr: picture.x.log ? 3 : 1, range: function () { return zoom.x || range; } },
        y: { range: function () { var across = zoom.x || range; return zoom.y || extent(picture, across[0], across[1]); } }
      },
      hooks: {
        draw: [function (u) {
          u.ctx.save();
          u.ctx.beginPath(); u.ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height); u.ctx.clip();
          drawRules(u, picture);
          if (whiskers) drawWhiskers(u, picture);
          drawDots(u, picture);
          u.ctx.restore();
        }],
        setSelect: [function (u) {
          var box = u.select, wide = box.width > 4 && !picture.x.names, tall = box.height > 4 && box.height < 0.98 * u.over.clientHeight;
          if (!wide && !tall) return;
          if (wide) zoom.x = [u.posToVal(box.left, "x"), u.posToVal(box.left + box.width, "x")];
          if (tall) zoom.y = [u.posToVal(box.top + box.height, "y"), u.posToVal(box.top, "y")];
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          zoomed();
        }],
        setCursor: [function (u) { readout.textContent = u.cursor.idx === null || u.cursor.idx === undefined ? "" : reading(picture, data, u.cursor.idx); }]
      }
    }, data, node);
    var at = id in read ? Math.min(read[id], xs.length - 1) : -1;
    node.onkeydown = function (event) {
      var step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if ((event.key === "+" || event.key === "-") && !picture.x.names && !picture.x.log) { event.preventDefault(); closer(event.key === "+" ? 0.5 : 2); return; }
      if (event.key === "0") { event.preventDefault(); reset.onclick(); return; }
      if (event.key === "Home") at = 0; else if (event.key === "End") at = xs.length - 1;
      else if (step) at = at < 0 ? (step > 0 ? 0 : xs.length - 1) : Math.min(xs.length - 1, Math.max(0, at + step * (event.shiftKey ? 10 : 1)));
      else return;
      event.preventDefault();
      read[id] = at;
      plot.setCursor({ left: plot.valToPos(xs[at], "x"), top: 10 }, false);
      readout.textContent = reading(picture, data, at);
    };
    plot.over.ondblclick = reset.onclick;
    if (zoom.x || zoom.y) { reset.hidden = false; node.after(reset); }
    return function (width) { plot.setSize({ width: width, height: height }); };
  }
  function finer(node, picture, range) {
    // A thinned picture is asked for again between two places, and asks for these at every later renewal.
    var home = node.closest("[data-finer]");
    if (!home || !(picture.thinned || home.hasAttribute("data-between")) || !window.htmx) return false;
    var base = home.getAttribute("data-finer");
    if (range) home.setAttribute("data-between", ""); else home.removeAttribute("data-between");
    home.setAttribute("hx-get", range ? base + "?from=" + Math.max(0, Math.floor(range[0])) + "&to=" + Math.max(0, Math.ceil(range[1])) : base);
    window.htmx.process(home);
    window.htmx.ajax("GET", home.getAttribute("hx-get"), { target: home, swap: "innerHTML" });
    return true;
  }

  // -- maps -------------------------------------------------------------------------------------------------------
  function mix(share) {
    var at = Math.min(RAMP.length - 1.0001, Math.max(0, share * (RAMP.length - 1))), i = Math.floor(at), rest = at - i;
    function part(hex, j) { return parseInt(hex.slice(1 + 2 * j, 3 + 2 * j), 16); }
    return "rgb(" + [0, 1, 2].map(function (j) { return Math.round(part(RAMP[i], j) * (1 - rest) + part(RAMP[i + 1], j) * rest); }).join(",") + ")";
  }
  function map(node, picture, readout) {
    var canvas = element("canvas"), at = null, height = Math.max(240, node.clientHeight);
    node.appendChild(canvas);
    var columns = picture.x.values.length, rows = picture.y.values.length, least = Infinity, most = -Infinity;
    picture.mean.forEach(function (row) { row.forEach(function (value) { if (value !== null) { least = Math.min(least, value); most = Math.max(most, value); } }); });
    var frame = {};
    function shade(share) { return mix(picture.better === "low" ? 1 - share : share); } // the better, the brighter
    function name(side, i) { return side.names ? side.names[i] : said(side.values[i]); }
    function draw(width) {
      var ratio = devicePixelRatio || 1, ctx = canvas.getContext("2d");
      canvas.width = width * ratio; canvas.height = height * ratio;
      canvas.style.width = width + "px"; canvas.style.height = height + "px";
      ctx.scale(ratio, ratio);
      frame = { left: 64, top: 10, width: width - 64 - 96, height: height - 10 - 46 };
      var w = frame.width / columns, h = frame.height / rows;
      function x(i) { return frame.left + i * w; }
      function y(j) { return frame.top + (rows - j) * h; }
      for (var j = 0; j < rows; j++) for (var i = 0; i < columns; i++) {
        var value = picture.mean[j][i];
        if (value === null) continue;
        ctx.fillStyle = shade(most > least ? (value - least) / (most - least) : 0.5);
        ctx.fillRect(x(i), y(j + 1), w + 0.6, h + 0.6);
      }
      picture.dots.forEach(function (cell) {
        ctx.beginPath(); ctx.arc(x(cell[0] + 0.5), y(cell[1] + 0.5), 2.6, 0, 2 * Math.PI);
        ctx.fillStyle = "#ffffff"; ctx.fill(); ctx.strokeStyle = "#000000"; ctx.lineWidth = 1; ctx.stroke();
      });
      if (picture.here) {
        [["#ffffff", 4], [color("best"), 2]].forEach(function (look) {
          ctx.beginPath(); ctx.arc(x(picture.here[0] + 0.5), y(picture.here[1] + 0.5), 8, 0, 2 * Math.PI);
          ctx.strokeStyle = look[0]; ctx.lineWidth = look[1]; ctx.stroke();
        });
      }
      if (at) { ctx.strokeStyle = "#ffffff"; ctx.lineWidth = 2; ctx.strokeRect(x(at[0]), y(at[1] + 1), w, h); }
      words(ctx, x, y);
      scale(ctx, width);
    }
    function words(ctx, x, y) {
      ctx.fillStyle = color("dim"); ctx.font = "12px system-ui, sans-serif";
      ctx.textAlign = "center"; ctx.textBaseline = "top";
      places(picture.x).forEach(function (tick) { ctx.fillText(clipped(tick[1]), x(tick[0] + 0.5), frame.top + frame.height + 6); });
      ctx.fillText(picture.x.label, frame.left + frame.width / 2, frame.top + frame.height + 26);
      ctx.textAlign = "right"; ctx.textBaseline = "middle";
      places(picture.y).forEach(function (tick) { ctx.fillText(clipped(tick[1]), frame.left - 6, y(tick[0] + 0.5)); });
      ctx.save(); ctx.translate(10, frame.top + frame.height / 2); ctx.rotate(-Math.PI / 2); ctx.textAlign = "center"; ctx.fillText(picture.y.label, 0, 0); ctx.restore();
    }
    function scale(ctx, width) {
      for (var i = 0; i < 60; i++) {
        ctx.fillStyle = shade(1 - i / 59);
        ctx.fillRect(width - 86, frame.top + i * frame.height / 60, 12, frame.height / 60 + 0.6);
      }
      ctx.fillStyle = color("dim"); ctx.textAlign = "left"; ctx.textBaseline = "middle";
      rounded(least, most).forEach(function (value) {
        var share = most > least ? (value - least) / (most - least) : 0.5;
        ctx.fillText(said(value), width - 68, frame.top + (1 - share) * frame.height);
      });
    }
    function clipped(text) { return text.length > 9 ? text.slice(0, 8) + "\u2026" : text; }
    function places(side) { // [position among the cells, text] of each tick
      var cells = side.values, last = cells.length - 1, step = Math.max(1, Math.ceil(last / 4));
      if (side.names) return side.names.map(function (name, i) { return [i, name]; }).filter(function (_, i) { return i % step === 0; });
      if (last < 5) return cells.map(function (value, i) { return [i, said(value)]; });
      var scale = side.log ? Math.log : Number, i = 0;
      return (side.log ? powers : rounded)(cells[0], cells[last]).map(function (value) {
        while (i < last - 1 && cells[i + 1] < value) i++;
        return [i + (scale(value) - scale(cells[i])) / (scale(cells[i + 1]) - scale(cells[i])), said(value)];
      });
    }
    function tell() {
      if (!at) { readout.textContent = ""; return; }
      var mean = picture.mean[at[1]][at[0]], low = picture.lower[at[1]][at[0]], high = picture.upper[at[1]][at[0]];
      readout.textContent = picture.x.label + " " + name(picture.x, at[0]) + "; " + picture.y.label + " " + name(picture.y, at[1]) + "; " +
        (mean === null ? "nothing there" : picture.name + " " + said(mean) + ", from " + said(low) + " to " + said(high));
    }
    function move(next) { at = next; tell(); draw(node.clientWidth); }
    canvas.onmousemove = function (event) {
      var i = Math.floor((event.offsetX - frame.left) / frame.width * columns), j = rows - 1 - Math.floor((event.offsetY - frame.top) / frame.height * rows);
      move(i >= 0 && i < columns && j >= 0 && j < rows ? [i, j] : null);
    };
    canvas.onmouseleave = function () { move(null); };
    node.onkeydown = function (event) {
      var step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!step) return;
      event.preventDefault();
      var from = at || (picture.here ? picture.here.map(Math.round) : [0, 0]);
      move([Math.min(columns - 1, Math.max(0, from[0] + step[0])), Math.min(rows - 1, Math.max(0, from[1] + step[1]))]);
    };
    draw(node.clientWidth);
    return draw;
  }
  function mapLegend(picture) {
    var list = element("ul", { "class": "legend", "aria-hidden": "true" });
    if (picture.dots.length) list.appendChild(key("dot", "tried", color("dim")));
    list.appendChild(key("dot", picture.name + ", by the scale at the right", RAMP[3]));
    return list;
  }

  function png(node, title) { // with its title, on the ground of the page
    var link = element("button", { type: "button", "class": "plain png", "aria-label": title + " as PNG" }, "PNG");
    link.onclick = function () {
      var from = node.querySelector("canvas"), ratio = devicePixelRatio || 1, made = element("canvas"), ctx = made.getContext("2d");
      made.width = from.width; made.height = from.height + 28 * ratio;
      ctx.fillStyle = color("card"); ctx.fillRect(0, 0, made.width, made.height);
      ctx.fillStyle = color("text"); ctx.font = 14 * ratio + "px system-ui, sans-serif"; ctx.fillText(title, 8 * ratio, 19 * ratio);
      ctx.drawImage(from, 0, 28 * ratio);
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
    var picture = JSON.parse(node.getAttribute("data-picture"));
    var readout = node.parentNode.querySelector(".readout"), is_map = picture.kind === "map";
    node.replaceChildren();
    var old = node.parentNode.querySelector(".legend");
    if (old) old.remove();
    var button = node.parentNode.querySelector(".reset");
    if (button) button.remove();
    var resize = (is_map ? map : lines)(node, picture, readout), width = node.clientWidth;
    var made = is_map ? mapLegend(picture) : legend(picture), group = node.closest(".pictures"), first = group && group.querySelector(".legend");
    if (!first || first.textContent !== made.textContent || first.parentNode === node.parentNode) node.after(made); // pictures side by side share one
    if (node.watch) node.watch.disconnect();
    node.watch = new ResizeObserver(function () {
      if (node.clientWidth && node.clientWidth !== width) { width = node.clientWidth; resize(width); }
    });
    node.watch.observe(node);
    if (!node.parentNode.querySelector(".png")) node.parentNode.appendChild(png(node, picture.title));
    node.setAttribute("data-drawn", "");
  }
  window.nilregretPictures = function (root) {
    root.querySelectorAll("[data-picture]:not([data-drawn])").forEach(draw);
  };
  document.addEventListener("theme-changed", function () { document.querySelectorAll("[data-drawn]").forEach(draw); });
  window.nilregretPictures(document);
  window.requestAnimationFrame(function () { window.performance.mark("nilregret-first-picture"); });
})();
