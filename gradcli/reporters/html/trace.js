(() => {
  const data = JSON.parse(document.getElementById("trace-data").textContent);
  const total = data.names.length;
  const find = (id) => document.getElementById(id);
  const [search, count, details, canvas] = ["search", "count", "details", "picture"].map(find);
  const name = (node) => data.texts.names[data.names[node]];
  const placed = (node) => data.texts.places[data.places[node]];
  const isModule = (id) => id >= total;
  const parentOf = (id) => isModule(id) ? data.modules[id - total][1] : data.module[id];
  const hooksOf = new Map();
  data.hooks.forEach((hook, call) => {
    if (hook[6] !== null) hooksOf.set(hook[6], [...(hooksOf.get(hook[6]) || []), call]);
  });
  const consumers = data.names.map(() => []);
  data.edges.forEach((targets, node) => targets.forEach((target) => consumers[target].push(node)));
  const path = (module) => module < 0 ? "" : `${path(data.modules[module][1])}${data.modules[module][1] < 0 ? "" : "."}${data.modules[module][0]}`;

  // --- what is folded, and the list of nodes by module
  const folded = new Set();
  const children = new Map([[-1, []]]);
  data.modules.forEach((_, module) => children.set(module, []));
  const firsts = new Int32Array(data.modules.length).fill(total);
  const sizes = new Int32Array(data.modules.length);
  for (let node = 0; node < total; node++) {
    for (let module = data.module[node]; module >= 0; module = data.modules[module][1]) {
      firsts[module] = Math.min(firsts[module], node);
      sizes[module]++;
    }
    children.get(data.module[node]).push(node);
  }
  data.modules.forEach(([, parent], module) => children.get(parent).push(total + module));
  const order = (id) => isModule(id) ? firsts[id - total] - 0.5 : id;
  children.forEach((list) => list.sort((a, b) => order(a) - order(b)));
  const depth = data.modules.map(() => 0);
  data.modules.forEach(([, parent], module) => { depth[module] = parent < 0 ? 0 : depth[parent] + 1; });

  function foldFrom(level) {
    folded.clear();
    depth.forEach((at, module) => { if (at >= level) folded.add(module); });
  }

  let graph, layout, rows = [], found = null, matching = new Set(), selected = -1;

  function flatten() {
    if (found !== null) { rows = found.map((node) => [node, 0]); return; }
    rows = [];
    const waiting = children.get(-1).map((id) => [id, 0]).reverse();
    while (waiting.length) {
      const [id, level] = waiting.pop();
      rows.push([id, level]);
      if (isModule(id) && !folded.has(id - total)) {
        const inside = children.get(id - total);
        for (let place = inside.length - 1; place >= 0; place--) waiting.push([inside[place], level + 1]);
      }
    }
  }

  function changed() {
    graph = visibleGraph(data, folded);
    layout = laidOut(graph);
    flatten();
    outline.resize(rows.length);
    outline.show(rows.findIndex(([id]) => id === selected));
    count.textContent = found !== null
      ? `${found.length} of ${total} nodes found` : `${graph.ids.length} boxes for ${total} nodes`;
    draw();
  }

  function toggle(id) {
    if (!isModule(id)) return;
    const module = id - total;
    if (!folded.delete(module)) folded.add(module);
    changed();
  }

  const outline = new RowList(find("outline"), {
    role: "treeitem",
    row(place, row) {
      const [id, level] = rows[place];
      row.setAttribute("aria-level", String(level + 1));
      row.style.paddingLeft = `${8 + 14 * Math.min(level, 12)}px`;
      if (isModule(id)) {
        const open = !folded.has(id - total);
        row.setAttribute("aria-expanded", String(open));
        textRow(row, [["name", `${open ? "▾" : "▸"} ${data.modules[id - total][0]}`], ["soft", `${sizes[id - total]} nodes`]]);
        row.addEventListener("dblclick", () => toggle(id));
      } else {
        if (data.bad[id]) row.classList.add("bad");
        textRow(row, [["name", `${name(id)}${hooksOf.has(id) ? " ●" : ""}`], ["soft", placed(id)]]);
      }
    },
    chosen: (place) => select(rows[place][0], { list: false }),
    key(key, place) {
      if (place < 0) return false;
      const [id] = rows[place], open = isModule(id) && !folded.has(id - total);
      if (key === "Enter" || (key === "ArrowRight" && isModule(id) && !open) || (key === "ArrowLeft" && open)) toggle(id);
      else if (key === "ArrowLeft" && parentOf(id) >= 0) select(total + parentOf(id));
      else return false;
      return true;
    },
  });

  const timeline = find("hooks") && new RowList(find("hooks"), {
    role: "option",
    row(place, row) {
      const [kind, who, where, change, effect, warning] = data.hooks[place];
      textRow(row, [["number", String(place + 1)], ["kind", kind], ["name", who], ["soft", where],
                    [effect === "unchanged" ? "soft" : "name", effect], ["soft", change]]);
      if (warning) { row.classList.add("bad"); row.title = warning; }
    },
    chosen(place) {
      const node = data.hooks[place][6];
      if (node !== null) select(node);
    },
  });
  if (timeline) timeline.resize(data.hooks.length);

  // --- one node
  function select(id, { list = true, picture = true } = {}) {
    let unfolded = false;
    for (let module = parentOf(id); module >= 0; module = data.modules[module][1]) unfolded = folded.delete(module) || unfolded;
    selected = id;
    if (unfolded) changed();
    else if (list) outline.show(rows.findIndex(([other]) => other === id));
    if (picture) centre(graph.place.get(id));
    describe(id);
    draw();
  }

  function described(kind, text) {
    const part = document.createElement(kind);
    part.textContent = text;
    details.append(part);
    return part;
  }

  function link(label, id, text) {
    const line = described("p", `${label} `);
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.addEventListener("click", () => select(id));
    line.append(button);
  }

  function describe(id) {
    details.replaceChildren();
    if (isModule(id)) {
      described("h2", path(id - total));
      described("p", `${sizes[id - total]} nodes`);
      const inside = children.get(id - total);
      inside.slice(0, 40).forEach((each) => link("", each, isModule(each) ? data.modules[each - total][0] : `#${each} ${name(each)}`));
      if (inside.length > 40) described("p", `and ${inside.length - 40} more, in the list`);
      return;
    }
    described("h2", `#${id} ${name(id)}`);
    const facts = [placed(id), data.texts.kinds[data.kinds[id]], path(data.module[id])].filter(Boolean);
    described("p", facts.join(" · "));
    if (data.rules[id]) described("p", `its backward: ${data.rules[id]}`);
    if (!data.ran[id]) described("p", "not run in this backward pass");
    const values = (title, list) => {
      if (!list.length) return;
      described("h3", title);
      list.forEach((text) => described("pre", text));
    };
    values("Gradients that came in", data.taken[id]);
    values("Gradients that left", data.given[id]);
    if (data.grad[id]) values(".grad", [data.grad[id]]);
    if (data.bytes[id]) values(`Saved: ${data.bytes[id]} bytes`, data.saved[id] || []);
    (hooksOf.get(id) || []).forEach((call) => values(`Hook ${call + 1}: ${data.hooks[call][1]}`, [`${data.hooks[call][4]}   ${data.hooks[call][3]}`]));
    consumers[id].slice(0, 20).forEach((each) => link("from", each, `#${each} ${name(each)}`));
    data.edges[id].slice(0, 20).forEach((each) => link("to", each, `#${each} ${name(each)}`));
  }

  // --- the picture
  const pen = canvas.getContext("2d");
  const view = { x: 0, y: 0, scale: 1 };
  let colours = {};

  function readColours() {
    const style = getComputedStyle(document.documentElement);
    for (const each of ["paper", "ink", "soft", "line", "panel", "focus", "failed"]) colours[each] = style.getPropertyValue(`--${each}`).trim();
  }

  let waiting = false;
  function draw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; paint(); });
  }

  function paint() {
    const wide = canvas.clientWidth, high = canvas.clientHeight, sharp = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(wide * sharp) || canvas.height !== Math.round(high * sharp)) {
      canvas.width = Math.round(wide * sharp);
      canvas.height = Math.round(high * sharp);
    }
    pen.setTransform(sharp, 0, 0, sharp, 0, 0);
    pen.fillStyle = colours.paper;
    pen.fillRect(0, 0, wide, high);
    pen.setTransform(sharp * view.scale, 0, 0, sharp * view.scale, sharp * (wide / 2 - view.x * view.scale), sharp * (high / 2 - view.y * view.scale));
    const half = { x: wide / 2 / view.scale, y: high / 2 / view.scale };
    const first = Math.max(0, Math.floor((view.y - half.y) / BOX.down) - 1);
    const last = Math.min(layout.layers.length - 1, Math.ceil((view.y + half.y) / BOX.down) + 1);
    const shown = [];
    for (let layer = first; layer <= last; layer++) {
      for (const box of layout.layers[layer]) if (Math.abs(layout.x[box] - view.x) < half.x + BOX.across) shown.push(box);
    }
    pen.strokeStyle = colours.soft;
    pen.lineWidth = 1.2;
    pen.beginPath();
    for (const box of shown) {
      for (const to of graph.out[box]) arrow(box, to);
      for (const from of graph.into[box]) if (layout.rank[from] < first) arrow(from, box);
    }
    pen.stroke();
    pen.textBaseline = "middle";
    shown.forEach(paintBox);
    canvas.dataset.boxes = String(shown.length);
  }

  function arrow(from, to) {
    const y = layout.rank[from] * BOX.down + BOX.height / 2, end = layout.rank[to] * BOX.down - BOX.height / 2;
    pen.moveTo(layout.x[from], y);
    pen.bezierCurveTo(layout.x[from], y + 18, layout.x[to], end - 18, layout.x[to], end);
  }

  function paintBox(box) {
    const id = graph.ids[box], x = layout.x[box] - BOX.width / 2, y = layout.rank[box] * BOX.down - BOX.height / 2;
    const module = isModule(id), leaf = !module && data.leaf[id];
    pen.fillStyle = module ? colours.line : colours.panel;
    pen.strokeStyle = id === selected || matching.has(id) ? colours.focus : !module && data.bad[id] ? colours.failed : colours.soft;
    pen.lineWidth = id === selected ? 3 : 1;
    pen.setLineDash(!module && !data.ran[id] ? [5, 4] : []);
    pen.beginPath();
    pen.roundRect(x, y, BOX.width, BOX.height, leaf ? BOX.height / 2 : 6);
    pen.fill();
    pen.stroke();
    pen.setLineDash([]);
    if (view.scale < 0.3) return;
    const lines = module
      ? [`▸ ${path(id - total).split(".").slice(-2).join(".")}`, `${graph.counts[box]} nodes`]
      : [`${name(id)}${hooksOf.has(id) ? " ●" : ""}`, `${placed(id)}  ${data.texts.kinds[data.kinds[id]]}`];
    lines.forEach((text, line) => {
      pen.font = line ? "11px ui-monospace, monospace" : "600 12px ui-monospace, monospace";
      pen.fillStyle = line ? colours.soft : colours.ink;
      pen.fillText(text.length > 28 ? `${text.slice(0, 27)}…` : text, x + 10, y + 13 + 16 * line);
    });
  }

  function centre(box) {
    if (box === undefined) return;
    view.x = layout.x[box];
    view.y = layout.rank[box] * BOX.down;
    view.scale = Math.max(view.scale, 0.8);
  }

  function whole(least = 0.02) {
    const low = Math.min(...layout.layers.map((layer) => layout.x[layer[0]])) - BOX.width;
    const high = Math.max(...layout.layers.map((layer) => layout.x[layer[layer.length - 1]])) + BOX.width;
    const tall = layout.layers.length * BOX.down;
    view.x = high - low > 6 * canvas.clientWidth ? layout.x[0] : (low + high) / 2;
    view.scale = Math.max(least, Math.min(1, canvas.clientWidth / (high - low), canvas.clientHeight / tall));
    view.y = Math.min(tall / 2, canvas.clientHeight / 2 / view.scale) - BOX.down / 2;
    draw();
  }

  function zoom(factor, at = { x: canvas.clientWidth / 2, y: canvas.clientHeight / 2 }) {
    const scale = Math.max(0.02, Math.min(3, view.scale * factor));
    const off = { x: at.x - canvas.clientWidth / 2, y: at.y - canvas.clientHeight / 2 };
    view.x += off.x / view.scale - off.x / scale;
    view.y += off.y / view.scale - off.y / scale;
    view.scale = scale;
    draw();
  }

  function boxAt(event) {
    const x = view.x + (event.offsetX - canvas.clientWidth / 2) / view.scale;
    const y = view.y + (event.offsetY - canvas.clientHeight / 2) / view.scale;
    const layer = layout.layers[Math.round(y / BOX.down)] || [];
    return layer.find((box) => Math.abs(layout.x[box] - x) <= BOX.width / 2 && Math.abs(layout.rank[box] * BOX.down - y) <= BOX.height / 2);
  }

  let dragged = null;
  canvas.addEventListener("pointerdown", (event) => { dragged = { x: event.clientX, y: event.clientY, moved: 0 }; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    if (!dragged) return;
    view.x -= (event.clientX - dragged.x) / view.scale;
    view.y -= (event.clientY - dragged.y) / view.scale;
    dragged = { x: event.clientX, y: event.clientY, moved: dragged.moved + 1 };
    draw();
  });
  canvas.addEventListener("pointerup", (event) => {
    const box = dragged && dragged.moved < 3 ? boxAt(event) : undefined;
    dragged = null;
    if (box !== undefined) select(graph.ids[box], { picture: false });
  });
  canvas.addEventListener("dblclick", (event) => { const box = boxAt(event); if (box !== undefined) toggle(graph.ids[box]); });
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15, { x: event.offsetX, y: event.offsetY }); }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const box = graph.place.get(selected);
    const beside = box === undefined ? [] : layout.layers[layout.rank[box]];
    const to = {
      ArrowDown: () => graph.out[box][0], ArrowUp: () => graph.into[box][0],
      ArrowRight: () => beside[beside.indexOf(box) + 1], ArrowLeft: () => beside[beside.indexOf(box) - 1],
    }[event.key];
    if (event.key === "Enter") toggle(selected);
    else if (to) { const next = box === undefined ? 0 : to(); if (next !== undefined) select(graph.ids[next]); }
    else return;
    event.preventDefault();
  });

  // --- search, keys, colours
  const texts = data.names.map((_, node) => `${name(node)}\n${placed(node)}\n${path(data.module[node])}`.toLowerCase());
  function look() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = words.length ? texts.flatMap((text, node) => words.every((word) => text.includes(word)) ? [node] : []) : null;
    matching = new Set(found || []);
    flatten();
    find("outline").scrollTop = 0;
    outline.resize(rows.length);
    outline.show(rows.findIndex(([id]) => id === selected));
    count.textContent = found !== null ? `${found.length} of ${total} nodes found` : `${graph.ids.length} boxes for ${total} nodes`;
    draw();
  }
  search.addEventListener("input", look);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && found && found.length) { find("outline").focus(); outline.move(0); }
    if (event.key === "Escape") { search.value = ""; look(); }
  });
  find("fold").addEventListener("click", () => { foldFrom(0); changed(); whole(0.4); });
  find("unfold").addEventListener("click", () => { folded.clear(); changed(); whole(0.4); });
  find("whole").addEventListener("click", () => whole());
  document.addEventListener("keydown", (event) => {
    if (event.target === search || event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = { "/": () => search.focus(), "+": () => zoom(1.25), "-": () => zoom(0.8), "0": () => whole(),
                   h: () => timeline && timeline.move((timeline.cursor + 1) % data.hooks.length) };
    if (!(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  });
  function follow() {
    const node = Number((/^#node-(\d+)$/.exec(location.hash) || [])[1]);
    if (node < total) select(node);
  }
  window.addEventListener("hashchange", follow);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); draw(); });
  new ResizeObserver(draw).observe(canvas);

  document.querySelector("main.trace").hidden = false;
  find("plain").hidden = true;
  readColours();
  let level = total <= 200 ? Infinity : Math.max(0, ...depth) + 1;
  do {
    foldFrom(level);
    graph = visibleGraph(data, folded);
    level = Math.min(level, Math.max(0, ...depth) + 1) - 1;
  } while (level >= 0 && graph.ids.length > 200);
  changed();
  whole(0.55);
  if (total) select(isModule(graph.ids[0]) ? graph.ids[0] : 0, { picture: false });
  follow();
})();
