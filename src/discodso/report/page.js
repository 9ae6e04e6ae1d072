"use strict";
// Draws a report from its data. Everything from the data enters the page as text; no markup is ever parsed.
(() => {
  const SVG = "http://www.w3.org/2000/svg", MATHML = "http://www.w3.org/1998/Math/MathML";
  const MATH_TAGS = new Set(["mrow", "mi", "mn", "mo", "msup", "msub", "mfrac", "msqrt"]);
  const COLOURS = 7;
  const state = {};  // of tables, by id: it survives an update of the data

  // ---------------------------------------------------------------------------------------------- elements

  const append = (node, children) => {
    for (const child of children.flat(Infinity)) {
      if (child === null || child === undefined || child === false) continue;
      node.append(child instanceof Node ? child : String(child));
    }
    return node;
  };
  const set = (node, attributes) => {
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value === true ? "" : value);
    }
    return node;
  };
  const h = (tag, attributes, ...children) => append(set(document.createElement(tag), attributes), children);
  const s = (tag, attributes, ...children) => append(set(document.createElementNS(SVG, tag), attributes), children);
  const math = (node, depth = 0) => {
    if (typeof node === "string") return document.createTextNode(node);
    const tag = MATH_TAGS.has(node[0]) ? node[0] : "mrow";
    const made = document.createElementNS(MATHML, tag);
    for (const child of node.slice(1)) if (depth < 400) made.append(math(child, depth + 1));
    return made;
  };
  const formula = (node, label) => {
    const made = document.createElementNS(MATHML, "math");
    made.setAttribute("display", "block");
    made.append(math(node));
    return h("div", {class: "formula", tabindex: 0, role: "group", "aria-label": label}, made);
  };
  const picture = (svg, label) => {  // it shrinks as far as it can be read, and scrolls then, with the root in sight
    const root = /^<svg[^>]* data-root="([\d.]+)"/.exec(svg);
    const image = h("img", {src: "data:image/svg+xml," + encodeURIComponent(svg), alt: label, onload: () => {
      image.style.minWidth = `${0.9 * image.naturalWidth}px`;
      holder.scrollLeft = (root ? root[1] : 0.5) * image.clientWidth - holder.clientWidth / 2;
    }});
    const holder = h("div", {class: "picture", tabindex: 0, role: "group", "aria-label": label}, image);
    return holder;
  };

  // ---------------------------------------------------------------------------------------------- numbers

  const number = (value, digits = 5) => {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-4 || size >= 1e7)) {
      return String(value.toExponential(Math.max(0, Math.min(digits, 4) - 1))).replace(/\.?0+e/, "e").replace("e+", "e").replace(/-/g, "−");
    }
    return Number(value.toPrecision(digits)).toString().replace("-", "−");
  };
  const whole = (value) => String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const short = (value, among = [value]) => {  // in the unit that the largest among others asks for
    const size = among.reduce((most, other) => Math.max(most, Math.abs(other)), 0);
    if (value === 0) return "0";
    if (size >= 1e6) return number(value / 1e6, 4) + "M";
    if (size >= 1e4) return number(value / 1e3, 4) + "k";
    return number(value, 4);
  };
  const duration = (seconds) => {
    if (seconds < 120) return `${number(seconds, 3)} s`;
    return seconds < 7200 ? `${number(seconds / 60, 3)} min` : `${number(seconds / 3600, 3)} h`;
  };
  const interval = (ends) => (ends ? `${number(ends[0], 4)} to ${number(ends[1], 4)}` : "–");

  const ticks = (low, high, count) => {
    const raw = (high - low) / Math.max(1, count), power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((m) => m >= raw * 0.999) || 10 * power;
    const found = [];
    for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9 && found.length < 50; n++) found.push(n * step);
    return found;
  };
  const logTicks = (low, high, count) => {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
    const stride = Math.max(1, Math.ceil((last - first + 1) / count));
    const found = [];
    for (let n = first; n <= last; n += stride) found.push(10 ** n);
    return found.length > 1 ? found : ticks(low, high, count).filter((value) => value > 0);
  };

  // ---------------------------------------------------------------------------------------------- charts

  // series: {name, x, y, low, high, low2, high2, step, thin, colour}; points: {x, y, text, math, note, chosen}
  const chart = (options) => {
    const {title, xLabel, yLabel, series = [], points = [], log = false, tall = 300} = options;
    const holder = h("div", {class: "chart", tabindex: 0, role: "img", "aria-label": describe(options)});
    const tip = h("div", {class: "tip", hidden: true});
    const spoken = h("div", {class: "hidden", "aria-live": "polite"});
    const box = h("div", {class: "box"}, holder, tip);
    const named = series.filter((line) => !line.thin);
    const keys = named.length > 1 || options.legend || options.keys
      ? h("ul", {class: "legend"},
        (options.keys || []).map((key) => h("li", {}, h("span", {class: `dot c${key.colour}`}), key.name)),
        named.map((line) => h("li", {}, h("span", {class: `swatch c${line.colour} d${line.dash || 0}`}), line.name)))
      : null;
    const figure = h("figure", {}, h("figcaption", {}, title), box, keys, spoken);
    const tools = h("div", {class: "tools"},
      numbers(options),
      h("button", {type: "button", onclick: () => save(exported(holder.firstChild), "image/svg+xml", title + ".svg"),
        "aria-label": `Save ${title} as SVG`}, "SVG"),
      h("button", {type: "button", onclick: () => save(csv(options), "text/csv", title + ".csv"),
        "aria-label": `Save the numbers of ${title} as CSV`}, "CSV"));
    figure.append(tools);
    const integral = points.length && points.every((point) => Number.isInteger(point.x));
    let draw = null, at = -1;

    const layout = (width) => {
      const height = Math.min(tall, Math.max(180, width * 0.66));
      const xs = [], ys = [];
      for (const line of series) {
        xs.push(...line.x);
        for (const own of [line.y, line.low, line.high]) if (own) ys.push(...own);
      }
      for (const point of points) { xs.push(point.x); ys.push(point.y); }
      if (options.diagonal) ys.push(...xs.filter((value) => value !== null));
      if (options.zero) ys.push(0);
      const usable = (value) => value !== null && Number.isFinite(value) && (!log || value > 0);
      const goodX = xs.filter((value) => value !== null && Number.isFinite(value)), goodY = ys.filter(usable);
      if (!goodX.length || !goodY.length) return null;
      const lowest = (own) => own.reduce((a, b) => Math.min(a, b)), highest = (own) => own.reduce((a, b) => Math.max(a, b));
      let x0 = options.fromZero ? 0 : lowest(goodX), x1 = highest(goodX), y0 = lowest(goodY), y1 = highest(goodY);
      if (x0 === x1) { x0 -= 0.5; x1 += 0.5; }
      if (!options.fromZero) { const pad = (x1 - x0) * 0.04; x0 -= pad; x1 += pad; }
      if (log) {
        if (y0 === y1) { y0 /= 2; y1 *= 2; }
        const pad = (y1 / y0) ** 0.06; y0 /= pad; y1 *= pad;
      } else {
        if (y0 === y1) { y0 -= 0.5; y1 += 0.5; }
        const pad = (y1 - y0) * 0.06;
        y0 = options.share && y0 >= 0 ? 0 : y0 - pad; y1 += pad;
      }
      const yTicks = log ? logTicks(y0, y1, height / 40) : ticks(y0, y1, height / 55);
      const left = 14 + 6.7 * highest(yTicks.map((value) => short(value, log ? [value] : yTicks).length).concat([3])) + (width > 320 ? 16 : 0);
      const top = 10, right = 14, bottom = 40;
      const X = (value) => left + (value - x0) / (x1 - x0) * (width - left - right);
      const f = log ? Math.log : (value) => value;
      const Y = (value) => height - bottom - (f(value) - f(y0)) / (f(y1) - f(y0)) * (height - top - bottom);
      return {width, height, left, top, right, bottom, X, Y, x0, x1, yTicks, usable};
    };

    const path = (line, own, g) => {
      let text = "", open = false, before = 0;
      line.x.forEach((x, i) => {
        if (!g.usable(own[i])) { open = false; return; }
        const px = g.X(x).toFixed(1), py = g.Y(own[i]).toFixed(1);
        text += open ? (line.step ? `H${px}V${py}` : `L${px} ${py}`) : `M${px} ${py}`;
        open = true; before = i;
      });
      return line.x.length && before === 0 && text ? text + "h0.1" : text;
    };
    const band = (line, low, high, g) => {
      let text = "", begin = [];
      const close = () => {
        if (begin.length > 1) {
          const upper = begin.map((i, n) => step(line, high, i, n, g, begin)).join("");
          const lower = begin.slice().reverse().map((i, n) => {
            const px = g.X(line.x[i]).toFixed(1), py = g.Y(low[i]).toFixed(1);
            return line.step ? (n ? `V${py}H${px}` : `L${px} ${py}`) : `L${px} ${py}`;
          }).join("");
          text += upper + lower + "Z";
        }
        begin = [];
      };
      line.x.forEach((_, i) => { if (g.usable(low[i]) && g.usable(high[i])) begin.push(i); else close(); });
      close();
      return text;
    };
    const step = (line, own, i, n, g) => {
      const px = g.X(line.x[i]).toFixed(1), py = g.Y(own[i]).toFixed(1);
      return n === 0 ? `M${px} ${py}` : line.step ? `H${px}V${py}` : `L${px} ${py}`;
    };

    const paint = () => {
      const g = layout(Math.max(240, holder.clientWidth || 600));
      draw = g;
      if (!g) { holder.replaceChildren(h("p", {class: "quiet"}, "Nothing to draw yet.")); return; }
      const svg = s("svg", {viewBox: `0 0 ${g.width} ${g.height}`, "aria-hidden": "true"});
      const bottom = g.height - g.bottom;
      for (const value of g.yTicks) {
        svg.append(s("line", {class: "grid", x1: g.left, x2: g.width - g.right, y1: g.Y(value), y2: g.Y(value)}),
          s("text", {x: g.left - 6, y: g.Y(value) + 4, "text-anchor": "end"}, short(value, log ? [value] : g.yTicks)));
      }
      const apart = (g.width - g.left) / 90;
      const xTicks = ticks(g.x0, g.x1, integral ? Math.min(apart, g.x1 - g.x0) : apart);
      for (const value of xTicks) {
        svg.append(s("line", {class: "grid", x1: g.X(value), x2: g.X(value), y1: g.top, y2: bottom}),
          s("text", {x: g.X(value), y: bottom + 16, "text-anchor": "middle"}, short(value, xTicks)));
      }
      svg.append(s("line", {class: "axis", x1: g.left, x2: g.width - g.right, y1: bottom, y2: bottom}),
        s("text", {class: "label", x: (g.left + g.width - g.right) / 2, y: g.height - 5, "text-anchor": "middle"}, xLabel));
      if (g.width > 320) {
        svg.append(s("text", {class: "label", transform: `translate(12 ${(g.top + bottom) / 2}) rotate(-90)`,
          "text-anchor": "middle"}, yLabel));
      }
      if (options.diagonal) {
        const a = Math.max(g.x0, options.diagonal[0]), b = Math.min(g.x1, options.diagonal[1]);
        svg.append(s("line", {class: "axis", x1: g.X(a), y1: g.Y(a), x2: g.X(b), y2: g.Y(b)}));
      }
      if (options.zero) svg.append(s("line", {class: "axis", x1: g.left, x2: g.width - g.right, y1: g.Y(0), y2: g.Y(0)}));
      for (const value of options.restarts || []) {
        svg.append(s("line", {class: "restart", x1: g.X(value), x2: g.X(value), y1: g.top, y2: bottom}));
      }
      for (const line of series) {
        if (line.low2) svg.append(s("path", {class: `band c${line.colour}`, d: band(line, line.low2, line.high2, g)}));
        if (line.low) svg.append(s("path", {class: `band c${line.colour}`, d: band(line, line.low, line.high, g)}));
      }
      for (const line of series) {
        svg.append(s("path", {class: `line c${line.colour} d${line.dash || 0}${line.thin ? " thin" : ""}`, d: path(line, line.y, g)}));
      }
      points.forEach((point, i) => {
        svg.append(s("circle", {class: `point c${point.colour ?? (point.chosen ? 1 : 0)}${point.quiet ? " quiet" : ""}`, "data-point": i,
          cx: g.X(point.x), cy: g.Y(point.y), r: point.quiet ? 3 : point.chosen ? 7 : 5}));
      });
      svg.append(s("g", {class: "mark"}));
      holder.replaceChildren(svg);
      if (at >= 0) show(at, false);
    };

    const lead = named[0] || series[0];
    const count = points.length ? points.length : lead ? lead.x.length : 0;
    const show = (index, say) => {
      if (!draw || !count) return;
      at = Math.max(0, Math.min(count - 1, index));
      const mark = holder.querySelector(".mark");
      mark.replaceChildren();
      let words, px, py = draw.top;
      tip.replaceChildren();
      if (points.length) {
        const point = points[at];
        px = draw.X(point.x); py = draw.Y(point.y);
        mark.append(s("circle", {class: "ring", cx: px, cy: py, r: 9}));
        words = `${xLabel} ${number(point.x)}, ${yLabel} ${number(point.y)}`;
        append(tip, [h("strong", {}, words), point.math ? formulaInline(point.math) : point.text ? h("div", {}, point.text) : null,
          point.note ? h("div", {class: "quiet"}, point.note) : null]);
        words += point.text ? `: ${point.text}` : "";
      } else {
        const x = lead.x[at];
        px = draw.X(x);
        mark.append(s("line", {class: "cursor", x1: px, x2: px, y1: draw.top, y2: draw.height - draw.bottom}));
        const rows = [];
        for (const line of named) {
          const place = line === lead ? at : nearest(line.x, x);
          const value = line.y[place];
          if (!draw.usable(value)) continue;
          mark.append(s("circle", {class: `point c${line.colour}`, cx: px, cy: draw.Y(value), r: 4}));
          const spread = line.low && line.low[place] !== null ? ` (${number(line.low[place], 4)} to ${number(line.high[place], 4)})` : "";
          rows.push([line, number(value) + spread]);
        }
        append(tip, [h("strong", {}, `${whole(x)} ${xLabel}`),
          rows.map(([line, text]) => h("div", {}, h("span", {class: `swatch c${line.colour}`}), `${line.name}: ${text}`))]);
        words = `${whole(x)} ${xLabel}: ` + rows.map(([line, text]) => `${line.name} ${text}`).join(", ");
      }
      tip.hidden = false;
      const room = box.clientWidth, scale = room / draw.width;
      const wide = Math.min(tip.offsetWidth, room), place = px * scale;
      tip.style.left = `${Math.max(0, Math.min(room - wide, place + (place > room / 2 ? -wide - 12 : 12)))}px`;
      tip.style.top = `${Math.max(0, points.length ? py * scale - tip.offsetHeight - 12 : 8)}px`;
      if (say) spoken.textContent = words;
    };
    const hide = () => {
      at = -1; tip.hidden = true;
      holder.querySelector(".mark")?.replaceChildren();
    };
    const follow = (event) => {
      if (!draw || !count) return;
      const frame = holder.getBoundingClientRect(), scale = draw.width / frame.width;
      const px = (event.clientX - frame.left) * scale, py = (event.clientY - frame.top) * scale;
      let best = 0, least = Infinity;
      for (let i = 0; i < count; i++) {
        const away = points.length ? Math.hypot(draw.X(points[i].x) - px, draw.Y(points[i].y) - py) : Math.abs(draw.X(lead.x[i]) - px);
        if (away < least) { least = away; best = i; }
      }
      if (points.length && least > 60) hide(); else show(best, false);
    };
    holder.addEventListener("pointermove", follow);
    holder.addEventListener("pointerdown", follow);
    holder.addEventListener("pointerleave", hide);
    holder.addEventListener("blur", hide);
    holder.addEventListener("keydown", (event) => {
      const moves = {ArrowLeft: at - 1, ArrowRight: at + 1, PageUp: at - 10, PageDown: at + 10, Home: 0, End: count - 1};
      if (event.key === "Escape") hide();
      else if (event.key in moves) { event.preventDefault(); show(moves[event.key], true); }
    });
    let before = 0;
    new ResizeObserver(() => { if (holder.clientWidth !== before) { before = holder.clientWidth; paint(); } }).observe(holder);
    return figure;
  };

  const formulaInline = (node, label) => {  // with a label it scrolls, without one its end is cut off
    const made = document.createElementNS(MATHML, "math");
    made.append(math(node));
    return h("div", label ? {class: "small-formula", tabindex: 0, role: "group", "aria-label": label} : {class: "small-formula"}, made);
  };
  const nearest = (xs, x) => {
    let best = 0;
    xs.forEach((value, i) => { if (value <= x) best = i; });
    return best;
  };
  const describe = ({title, series = [], points = [], xLabel, yLabel}) => {
    const last = series.filter((line) => !line.thin).slice(0, 4).map((line) => {
      const known = line.y.filter((value) => value !== null);
      return known.length ? `${line.name} from ${number(known[0], 3)} to ${number(known[known.length - 1], 3)}` : null;
    }).filter(Boolean).join("; ");
    return `${title}: ${yLabel} against ${xLabel}. ${points.length ? `${points.length} points.` : last}. Arrow keys move through it.`;
  };

  // the numbers behind a chart, as rows
  const rowsOf = ({series = [], points = [], xLabel, yLabel}) => {
    if (points.length) return [[xLabel, yLabel, "what"], ...points.map((p) => [p.x, p.y, p.text || ""])];
    const head = [xLabel], columns = [];
    for (const line of series) {
      head.push(line.name); columns.push([line, line.y]);
      if (line.low) { head.push(`${line.name}, low`, `${line.name}, high`); columns.push([line, line.low], [line, line.high]); }
    }
    const xs = [...new Set(series.flatMap((line) => line.x))].sort((a, b) => a - b);
    const maps = series.map((line) => new Map(line.x.map((x, i) => [x, i])));
    return [head, ...xs.map((x) => [x, ...columns.map(([line, own]) => {
      const place = maps[series.indexOf(line)].get(x);
      return place === undefined || own[place] === null ? "" : own[place];
    })])];
  };
  const numbers = (options) => {
    const details = h("details", {}, h("summary", {"aria-label": `Numbers of ${options.title}`}, "Numbers"));
    details.addEventListener("toggle", () => {
      if (!details.open || details.children.length > 1) return;
      const [head, ...rows] = rowsOf(options), stride = Math.ceil(rows.length / 40);
      const kept = rows.filter((_, i) => i % stride === 0 || i === rows.length - 1);
      details.append(h("div", {class: "scroll", tabindex: 0, role: "group", "aria-label": `Numbers of ${options.title}`},
        h("table", {}, h("thead", {}, h("tr", {}, head.map((name) => h("th", {scope: "col"}, name)))),
          h("tbody", {}, kept.map((row) => h("tr", {}, row.map((cell) => h("td", {}, typeof cell === "number" ? number(cell) : cell))))))));
    });
    return details;
  };
  const csv = (options) => rowsOf(options).map((row) => row.map((cell) => {
    let text = String(cell);
    if (typeof cell === "string" && /^[=+\-@\t\r]/.test(text)) text = "'" + text;  // no formula for a spreadsheet
    return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  }).join(",")).join("\n") + "\n";
  const exported = (svg) => {
    if (!(svg instanceof SVGElement)) return "";
    const copy = svg.cloneNode(true), frame = svg.viewBox.baseVal;
    set(copy, {xmlns: SVG, width: frame.width, height: frame.height});
    copy.removeAttribute("aria-hidden");
    copy.querySelector(".mark")?.remove();
    // Its own colours, those of the light page, so that it can stand in a paper.
    const of = {text: ["fill"], line: ["stroke", "stroke-width", "stroke-dasharray"], path: ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity"], circle: ["fill", "stroke"]};
    document.documentElement.classList.add("light");
    for (const [tag, names] of Object.entries(of)) {
      const from = svg.querySelectorAll(tag), to = copy.querySelectorAll(tag);
      to.forEach((node, i) => { const style = getComputedStyle(from[i]); for (const name of names) node.setAttribute(name, style.getPropertyValue(name)); });
    }
    document.documentElement.classList.remove("light");
    copy.setAttribute("font-family", "sans-serif");
    copy.setAttribute("font-size", "12");
    return new XMLSerializer().serializeToString(copy);
  };
  const save = (content, type, name) => {
    const address = URL.createObjectURL(new Blob([content], {type}));
    const link = h("a", {href: address, download: name.replace(/[^\w.]+/g, "-")});
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  };

  // ---------------------------------------------------------------------------------------------- designs

  const chips = (design) => h("ol", {class: "chips"}, design.tokens.map((name, i) =>
    h("li", {}, h("span", {}, name), design.values[i].map((value) => h("small", {}, value)))));
  const drawn = (design) => h("div", {class: "drawn"},
    design.svg ? picture(design.svg, `Tree: ${design.text}`) : null,
    design.math ? formula(design.math, `Equation: ${design.text}`) : null,
    design.svg && design.text ? h("details", {}, h("summary", {}, "As text"), h("pre", {tabindex: 0}, design.text)) : null,
    !design.svg && !design.math ? (design.tree ? h("pre", {tabindex: 0}, design.text) : design.tokens ? chips(design) : null) : null);

  const table = (group) => {
    const id = `${group.id}-designs`;
    const own = state[id] || (state[id] = {key: group.objectives.length ? "goal-0" : "reward", down: true, filter: "", open: new Set()});
    const seeds = group.runs.length > 1;
    const goals = group.objectives.map((name, i) => [`goal-${i}`, name, (d) => number(d.goals[i], 7) + (i || d.violation === undefined ? "" : ` (violation ${number(d.violation, 3)})`)]);
    const columns = [...(goals.length ? goals : [["reward", "reward", (d) => number(d.reward, 7) + (d.error === null ? "" : ` ± ${number(d.error, 2)}`) + (d.violation === undefined ? "" : ` (violation ${number(d.violation, 3)})`)]]), ["call", "at call", (d) => d.call ? whole(d.call) : "known"],
      ["length", "tokens", (d) => d.length], ...(seeds ? [["seed", "seed", (d) => d.seed]] : []), ["line", "design", null]];
    const body = h("tbody", {}), heads = {};
    const count = h("p", {class: "quiet", role: "status"});
    const key = (design) => `${design.line}|${design.call}|${design.seed}`;
    const fill = () => {
      const words = own.filter.toLowerCase().split(/\s+/).filter(Boolean);
      const kept = group.designs.filter((d) => words.every((word) => d.line.toLowerCase().includes(word)));
      const by = (d) => own.key.startsWith("goal-") ? d.goals[own.key.slice(5)] : d[own.key];
      kept.sort((a, b) => (by(a) < by(b) ? -1 : by(a) > by(b) ? 1 : 0) * (own.down ? -1 : 1));
      body.replaceChildren(...kept.flatMap((design, n) => {
        const mark = key(design), open = own.open.has(mark), place = `${id}-${n}`;
        const button = h("button", {type: "button", class: design.svg ? "open brief" : "open", id: `${place}-b`, "aria-expanded": String(open), "aria-controls": open ? place : null,
          onclick: () => { if (own.open.has(mark)) own.open.delete(mark); else own.open.add(mark); fill(); document.getElementById(`${place}-b`).focus(); }},
        design.line || "(empty)");
        const row = h("tr", {}, columns.map(([name, , show]) => h("td", {class: `cell-${name}`}, show ? show(design) : button)));
        return open ? [row, h("tr", {class: "more", id: place}, h("td", {colspan: columns.length}, drawn(design)))] : [row];
      }));
      count.textContent = kept.length === group.designs.length ? `${kept.length} designs` : `${kept.length} of ${group.designs.length} designs`;
      for (const [name, head] of Object.entries(heads)) head.setAttribute("aria-sort", name === own.key ? (own.down ? "descending" : "ascending") : "none");
    };
    const head = h("tr", {}, columns.map(([name, title]) => (heads[name] = h("th", {scope: "col"},
      h("button", {type: "button", id: `${id}-sort-${name}`, onclick: () => { own.down = own.key === name ? !own.down : name === "reward"; own.key = name; fill(); }}, title)))));
    const input = h("input", {type: "search", id: `${id}-filter`, placeholder: "words of a design", autocomplete: "off",
      oninput: (event) => { own.filter = event.target.value; fill(); }});
    input.value = own.filter;
    fill();
    return [h("div", {class: "filter"}, h("label", {for: `${id}-filter`}, "Filter"), input, count),
      h("div", {class: "scroll", tabindex: 0, role: "group", "aria-label": "Best designs"},
        h("table", {class: "designs"}, h("caption", {class: "hidden"}, "Best designs; a click on a design draws it"), h("thead", {}, head), body))];
  };

  // ---------------------------------------------------------------------------------------------- sections

  const coloured = (lines, step, extra = {}) => lines.names.map((name, i) => ({name, x: lines.calls, y: lines.values[i],
    colour: name === "all others" ? "rest" : i % COLOURS, dash: Math.floor(i / COLOURS), step, ...extra}));
  const curveLines = (curve, colour, thin) => [
    ...(thin ? curve.runs.map((y, i) => ({name: `run ${i + 1}`, x: curve.calls, y, step: true, thin: true, colour})) : []),
    {name: curve.count > 1 ? `${curve.label}, mean of ${curve.count}` : curve.label, x: curve.calls, y: curve.mean, low: curve.low, high: curve.high, step: true, colour}];
  const tile = (name, value, note) => h("div", {class: "tile"}, h("dt", {}, name), h("dd", {}, value, note ? h("small", {}, note) : null));
  let level = 2;  // of the headings of the section that is being made
  const sub = (words) => h("div", {class: "sub", role: "heading", "aria-level": level + 1}, words);
  const mostBroken = (runs) => {
    const counts = {};
    for (const run of runs) for (const [name, count] of Object.entries(run.broken || {})) counts[name] = (counts[name] || 0) + count;
    const [first] = Object.entries(counts).sort((a, b) => b[1] - a[1]);
    return first ? `broken most: ${first[0]}, by ${whole(first[1])}` : null;
  };
  const pill = (word) => h("span", {class: `pill ${word}`}, word);

  const found = (group) => {
    const runs = group.runs, best = runs.map((run) => run.best).filter((value) => value !== null);
    const total = (key) => runs.reduce((sum, run) => sum + (run[key] || 0), 0);
    const one = runs.length === 1 ? runs[0] : runs.find((run) => run.folder === group.leading) || runs[0];
    const budget = runs.reduce((sum, run) => sum + (run.budget || 0), 0);
    const shown = group.best, equation = shown && shown.kind === "equation";
    const parts = [h("dl", {class: "tiles"},
      tile(group.measure, best.length ? number(Math.max(...best), 6) : "–", equation ? null : one.score),
      tile("objective calls", whole(total("calls")), budget > total("calls") ? `of ${whole(budget)}` : null),
      tile("failed", whole(total("failures"))),
      group.runs.some((run) => run.feasible !== undefined) ? tile("feasible", whole(total("feasible")), mostBroken(group.runs)) : null,
      runs.some((run) => run.repeats !== null) ? tile("repeats", `${number(100 * total("repeats") / runs.length, 3)} %`, "of all proposals, not paid for") : null,
      tile("time", duration(total("seconds"))),
      runs.length > 1 ? tile("runs", runs.length, "each with its own seed") : null)];
    if (shown && !equation) parts.push(drawn(shown));
    const sentences = [...new Set(runs.filter((run) => run.sentence).map((run) => run.sentence))];
    parts.push(...sentences.map((words) => h("p", {class: "quiet"}, `It ended because ${words}.`)));
    return parts;
  };
  // ---- an equation: the law first, then the others of the front, how it fits, and what it makes of each input
  const law = (shown) => [
    formula(shown.math, shown.text),
    h("dl", {class: "tiles"},
      tile("R²", number(shown.r2, 6), "the share of the variance that it explains"),
      shown.rmse === null || shown.rmse === undefined ? null : tile("typical error", number(shown.rmse, 4), `root mean square, in units of ${shown.target}`),
      shown.complexity ? tile("complexity", number(shown.complexity)) : null,
      shown.rows ? tile("rows", whole(shown.rows)) : null),
    h("details", {}, h("summary", {}, "As text and LaTeX"), command(shown.text, "Copy the equation as text"), command(shown.latex, "Copy the equation as LaTeX"))];
  const equations = (group) => {
    const own = group.front;
    return [h("div", {class: "front"}, h("div", {}, front(group)),
      h("div", {}, h("table", {class: "equations"},
        h("caption", {class: "hidden"}, "Equations of the front, by rising complexity"),
        h("thead", {}, h("tr", {}, [own.x, own.y, ...(own.error ? [own.error] : []), "equation"].map((name) => h("th", {scope: "col"}, name)))),
        h("tbody", {}, own.points.map((point) => h("tr", {class: point.chosen ? "chosen" : null},
          h("td", {}, number(point.x), point.chosen ? h("span", {class: "mark-chosen"}, "chosen") : null),
          h("td", {}, number(point.y, 3)), own.error ? h("td", {}, number(point.error, 3)) : null,
          h("td", {}, point.math ? formulaInline(point.math, point.text) : point.text, point.finite === false ? h("small", {class: "quiet"}, "not finite beyond the data") : null)))))))];
  };
  const fit = (shown) => {
    const {given, predicted} = shown.plot, known = given.map((_, i) => i).filter((i) => given[i] !== null && predicted[i] !== null);
    const truth = known.map((i) => given[i]), most = shown.rows > given.length ? `${whole(given.length)} of ${whole(shown.rows)} rows, evenly by rank.` : null;
    return [h("div", {class: "two"},
      chart({title: "By the equation against the data", xLabel: `${shown.target}, as given`, yLabel: `${shown.target}, by the equation`, tall: 320,
        diagonal: [truth.reduce((a, b) => Math.min(a, b), Infinity), truth.reduce((a, b) => Math.max(a, b), -Infinity)],
        points: known.map((i) => ({x: given[i], y: predicted[i], quiet: true}))}),
      chart({title: "What is left: data minus equation", xLabel: `${shown.target}, by the equation`, yLabel: "residual", tall: 320, zero: true,
        points: known.map((i) => ({x: predicted[i], y: given[i] - predicted[i], quiet: true}))})),
    h("p", {class: "quiet"}, "Points on the lines are explained exactly. A pattern among the residuals is something that the equation misses. ", most)];
  };
  const inputs = (shown) => {
    const {given, predicted, curve} = shown.plot;
    const each = (own) => {
      const of = (values, name, colour) => values.map((y, i) => ({x: own.values[i], y, quiet: true, text: name, colour})).filter((p) => p.x !== null && p.y !== null);
      const line = curve && curve.x.length ? [{name: "by the equation", x: curve.x, y: curve.y, colour: 1}] : [];
      const names = [{name: "as given", colour: 0}, ...(line.length ? [] : [{name: "by the equation", colour: 1}])];
      return chart({title: own.used === false ? `${own.name} (not in the equation)` : own.name, xLabel: own.name, yLabel: shown.target, tall: line.length ? 340 : 230, keys: names, series: line,
        points: [...of(given, "as given", 0), ...(line.length ? [] : of(predicted, "by the equation", 1))]});
    };
    return [h("div", {class: shown.plot.inputs.length > 1 ? "many" : null}, shown.plot.inputs.map(each)),
      shown.columns.length > shown.plot.inputs.length ? h("p", {class: "quiet"}, `${shown.plot.inputs.length} of ${shown.columns.length} inputs, those of the equation first.`) : null];
  };
  const learning = (group) => {
    const many = group.runs.length > 1;
    const first = chart({title: group.objectives.length ? "Hypervolume of the front" : "Best reward", xLabel: "objective calls", yLabel: group.measure, fromZero: true, series: curveLines(group.curve, 0, many)});
    const note = many ? h("p", {class: "quiet"}, "Thin lines are single runs; the band is the 95 % bootstrap interval of their mean.") : null;
    const race = group.raced ? h("p", {class: "quiet"}, "At the end the best designs were evaluated again on fresh seeds: rewards before are noisy, and the best of many are lucky.") : null;
    const rewards = chart({title: many ? "Rewards of the batches, best run" : "Rewards of the batches", xLabel: "objective calls", yLabel: "reward", fromZero: true, series: coloured(group.rewards, false), restarts: group.rewards.restarts});
    const count = group.rewards.restarts.length;
    const starts = count ? h("p", {class: "quiet"}, `Dotted lines: the method began anew, ${count === 1 ? "once" : count + " times"}.`) : null;
    return [h("div", {class: "two"}, h("div", {}, first, note, race), h("div", {}, rewards, starts))];
  };
  const front = (group) => {
    const own = group.front;
    const line = {name: own.y, x: own.points.map((p) => p.x), y: own.points.map((p) => p.y), colour: "rest", thin: true};
    const trees = own.points.filter((point) => point.svg || point.tokens);
    return [chart({title: own.title || "Accuracy against complexity", xLabel: own.x, yLabel: own.y, log: own.log, points: own.points, series: own.goals ? [] : [line]}),
      h("p", {class: "quiet"}, own.note ? own.note : own.y === "loss" ? "Each point is the best equation of its complexity; the large one was chosen." : "Each point is the best design of its length; the large one is the best of all."),
      ...trees.map((point) => h("details", {}, h("summary", {}, point.chosen ? `${point.note} (chosen)` : point.note), drawn(point)))];
  };
  const overTime = (group) => {
    const values = Object.entries(group.values);
    const quantiles = (lines) => [{name: "median", x: lines.calls, y: lines.values[2], low: lines.values[0], high: lines.values[4], low2: lines.values[1], high2: lines.values[3], colour: 0}];
    const log = (lines) => {
      const all = [...lines.values[0], ...lines.values[4]].filter((value) => value !== null);
      return all.length > 0 && Math.min(...all) > 0 && Math.max(...all) / Math.min(...all) > 1000;
    };
    return [h("div", {class: "two"},
      chart({title: "Lengths of designs", xLabel: "objective calls", yLabel: "tokens", fromZero: true, share: true, series: coloured(group.lengths, false)}),
      group.tokens.names.length ? chart({title: "Share of each token", xLabel: "objective calls", yLabel: "share", fromZero: true, share: true, legend: true, series: coloured(group.tokens, false)}) : null,
      group.proposers.names.length ? chart({title: "Who proposes", xLabel: "objective calls", yLabel: "share of the next batch", fromZero: true, share: true, legend: true, series: coloured(group.proposers, false)}) : null),
    values.length ? sub("Values of each token that carries one") : null,
    values.length ? h("p", {class: "quiet"}, "The line is the median; the bands hold half and nine tenths of the values of a batch.") : null,
    values.length ? h("div", {class: "many"}, values.map(([name, lines]) => chart({title: name, xLabel: "objective calls", yLabel: "value", fromZero: true, tall: 200, log: log(lines), series: quantiles(lines)}))) : null];
  };
  const failures = (group) => {
    const own = group.failures;
    if (!own.count) return [h("p", {}, "No evaluation failed.")];
    return [h("p", {}, `${whole(own.count)} evaluations failed. Reasons among the first of them:`),
      h("ul", {}, own.reasons.map(([reason, count]) => h("li", {}, `${count} ×: the objective ${reason}`))),
      h("details", {}, h("summary", {}, "The first failures"), h("div", {class: "scroll", tabindex: 0, role: "group", "aria-label": "Failures"},
        h("table", {}, h("thead", {}, h("tr", {}, ["call", "reason", "design"].map((name) => h("th", {scope: "col"}, name)))),
          h("tbody", {}, own.listed.map((f) => h("tr", {}, h("td", {}, f.call), h("td", {}, f.reason), h("td", {}, f.design)))))))];
  };
  const command = (words, label = "Copy the command") => h("div", {class: "command"}, h("code", {tabindex: 0}, words),
    h("button", {type: "button", onclick: (event) => { navigator.clipboard?.writeText(words).then(() => { event.target.textContent = "Copied"; }, () => {}); }, "aria-label": label}, "Copy"));
  const about = (group) => [
    sub("Repeat it"), ...group.runs.slice(0, 20).map((run) => (run.repeat ? command(run.repeat) : null)),
    group.runs.every((run) => !run.repeat) ? h("p", {}, "It began in Python: run that program again.") : null,
    group.runs.some((run) => run.started && run.started !== run.repeat) ? [h("p", {}, "It was started by"), ...[...new Set(group.runs.map((run) => run.started))].filter(Boolean).slice(0, 20).map((words) => command(words))] : null,
    sub("Runs"), h("div", {class: "scroll", tabindex: 0, role: "group", "aria-label": "Runs"},
      h("table", {}, h("thead", {}, h("tr", {}, ["folder", "seed", "status", "calls", "best reward", "time"].map((name) => h("th", {scope: "col"}, name)))),
        h("tbody", {}, group.runs.map((run) => h("tr", {}, h("td", {}, run.folder), h("td", {}, run.seed), h("td", {}, pill(run.status)), h("td", {}, whole(run.calls)), h("td", {}, number(run.best, 6)), h("td", {}, duration(run.seconds))))))),
    group.settings ? h("details", {}, h("summary", {}, "Settings"), h("pre", {tabindex: 0}, group.settings)) : null,
    group.environment.length ? h("details", {}, h("summary", {}, "Environment"), h("table", {class: "facts"}, h("tbody", {}, group.environment.map(([name, value]) => h("tr", {}, h("th", {scope: "row"}, name), h("td", {}, value)))))) : null];
  const comparison = (own) => [
    chart({title: "Best reward of each method", xLabel: "objective calls", yLabel: "best reward", fromZero: true, tall: 360, legend: true,
      series: own.curves.flatMap((curve, i) => curveLines(curve, i % COLOURS, false).map((line) => ({...line, dash: Math.floor(i / COLOURS)})))}),
    h("p", {class: "quiet"}, `Means over runs with their 95 % bootstrap intervals. The table compares best rewards after ${whole(own.calls)} objective calls.`),
    h("div", {class: "scroll", tabindex: 0, role: "group", "aria-label": "Statistics"}, h("table", {},
      h("thead", {}, h("tr", {}, ["method", "runs", "mean", "standard error", "mean, 95 %", "interquartile mean", "its 95 %"].map((name) => h("th", {scope: "col"}, name)))),
      h("tbody", {}, own.methods.map((m) => h("tr", {}, h("th", {scope: "row"}, m.label), h("td", {}, m.runs), h("td", {}, number(m.mean)), h("td", {}, number(m.standard_error, 2)), h("td", {}, interval(m.mean_interval)), h("td", {}, number(m.interquartile_mean)), h("td", {}, interval(m.interquartile_interval))))))),
    sub("Probability of improvement"),
    h("p", {class: "quiet"}, "The chance that a run of the first beats one of the second; ties count half."),
    h("ul", {class: "bars"}, own.improvements.map((pair) => {
      const bar = h("span", {class: "bar"});
      bar.style.width = `${100 * pair.probability}%`;
      return h("li", {}, h("span", {}, `${pair.first} > ${pair.second}`), h("span", {class: "track"}, bar), h("span", {}, `${number(pair.probability, 3)}${pair.interval ? ` (${interval(pair.interval)})` : ""}`));
    }))];

  // ---------------------------------------------------------------------------------------------- the page

  // [id, heading, level, data, function of the data to content]
  const sections = (data) => data.tasks.flatMap((task) => {
    const several = data.tasks.length > 1, top = several ? 3 : 2, low = task.groups.length > 1 ? top + 1 : top;
    return [
    ...(several ? [[task.id, task.title, 2, null, null]] : []),
    ...(task.comparison ? [[`${task.id}-comparison`, "Comparison", top, task.comparison, comparison]] : []),
    ...task.groups.flatMap((group) => [
      ...(task.groups.length > 1 ? [[group.id, group.label, top, null, null]] : []),
      ...(group.best && group.best.kind === "equation" ? [
        [`${group.id}-found`, "The equation", low, group.best, () => law(group.best)],
        ...(group.front ? [[`${group.id}-front`, "Simpler and longer equations", low, group.front, () => equations(group)]] : []),
        ...(group.best.plot ? [[`${group.id}-fit`, "How it fits", low, group.best.plot, () => fit(group.best)]] : []),
        ...(group.best.plot && group.best.plot.inputs && group.best.plot.inputs.length ? [[`${group.id}-inputs`, "Each input", low, group.best.plot, () => inputs(group.best)]] : []),
        [`${group.id}-search`, "The search", low, group.runs, () => found(group)],
      ] : [[`${group.id}-found`, "What was found", low, [group.runs, group.best], () => found(group)]]),
      ...(group.front && !(group.best && group.best.kind === "equation") ? [[`${group.id}-front`, group.front.title || "Accuracy and complexity", low, group.front, () => front(group)]] : []),
      [`${group.id}-learning`, "Learning", low, [group.curve, group.rewards], () => learning(group)],
      ...(group.designs.length ? [[`${group.id}-top`, "Best designs", low, group.designs, () => table(group)]] : []),
      ...(group.lengths.names.length ? [[`${group.id}-time`, "Over time", low, [group.lengths, group.tokens, group.proposers, group.values], () => overTime(group)]] : []),
      [`${group.id}-failures`, "Failures", low, group.failures, () => failures(group)],
      [`${group.id}-about`, "Settings and environment", low, [group.runs, group.settings, group.environment], () => about(group)],
    ])];
  });

  const drawnBefore = new Map();
  const render = (data) => {
    const main = document.getElementById("main"), wanted = sections(data);
    const focused = document.activeElement && document.activeElement.id, y = window.scrollY;
    const selection = document.activeElement instanceof HTMLInputElement ? [document.activeElement.selectionStart, document.activeElement.selectionEnd] : null;
    const opened = new Set([...main.querySelectorAll("details[open] > summary")].map((node) => `${node.closest("section").id}|${node.textContent}|${node.getAttribute("aria-label")}`));
    document.title = data.title;
    document.getElementById("top").replaceChildren(
      h("h1", {}, data.title),
      h("p", {class: "quiet", id: "status", role: "status"}, data.live ? (data.running ? [pill("running"), " This page follows the run."] : [pill("ended"), " The run has ended; this is all of it."]) : [...new Set(data.tasks.flatMap((t) => t.groups.flatMap((g) => g.runs.map((r) => r.status))))].map(pill)),
      h("nav", {"aria-label": "Parts of the report"}, h("ul", {}, (data.tasks.length > 1 ? wanted.filter((part) => !part[4] && part[2] === 2)
        : data.tasks[0].groups.length > 1 ? wanted.filter((part) => !part[4] || part[4] === comparison) : wanted)
        .map(([id, heading]) => h("li", {}, h("a", {href: `#${id}`}, heading))))));
    const keep = new Set(wanted.map(([id]) => id));
    for (const node of [...main.children]) if (!keep.has(node.id)) { node.remove(); drawnBefore.delete(node.id); }
    let after = null;
    for (const [id, heading, depth, own, content] of wanted) {
      const mark = JSON.stringify([heading, own]);
      let node = document.getElementById(id);
      if (!node || drawnBefore.get(id) !== mark) {
        level = depth;
        const fresh = h("section", {id, class: content ? "card" : "divider", "aria-label": heading}, h(`h${depth}`, {}, heading), content ? content(own) : null);
        if (node) {  // as high as before until its charts are drawn, or all below would jump
          fresh.style.minHeight = `${node.offsetHeight}px`;
          setTimeout(() => { fresh.style.minHeight = ""; }, 200);
          node.replaceWith(fresh);
        }
        else if (after) after.after(fresh);
        else main.prepend(fresh);
        node = fresh;
        drawnBefore.set(id, mark);
      }
      after = node;
    }
    for (const node of main.querySelectorAll("details > summary")) {
      if (opened.has(`${node.closest("section").id}|${node.textContent}|${node.getAttribute("aria-label")}`)) node.parentNode.open = true;
    }
    const again = focused && document.getElementById(focused);
    if (again && again !== document.activeElement) {
      again.focus({preventScroll: true});
      if (selection && again instanceof HTMLInputElement) again.setSelectionRange(...selection);
    }
    if (window.scrollY !== y) window.scrollTo(0, y);
    document.getElementById("foot").replaceChildren(h("p", {}, `Made by discodso ${data.version}, ${data.made}. This file needs nothing else.`));
  };

  const follow = async (mark) => {
    let next = mark;
    try {
      const answer = await fetch("data.json", {cache: "no-store", headers: mark ? {"If-None-Match": mark} : {}});
      if (answer.status === 200) {
        const data = await answer.json();
        render(data);
        if (!data.running) return;
        next = answer.headers.get("ETag");
      }
    } catch {
      document.getElementById("status").replaceChildren(pill("stopped"), " discodso no longer answers; this is what it said last.");
      return;
    }
    setTimeout(() => follow(next), 1000);
  };

  const data = JSON.parse(document.getElementById("data").textContent);
  render(data);
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  if (data.live && data.running) follow(null);
})();
