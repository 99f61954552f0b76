"use strict";
// Where the boxes of a graph go: nodes in layers below those that feed them, each close to what it belongs to.
const BOX = { width: 210, height: 42, across: 236, down: 74 };

// The graph that is seen while some modules are folded: a folded module stands for all nodes inside it.
function visibleGraph(data, folded) {
  const total = data.names.length;
  const top = new Int32Array(data.modules.length).fill(-1);
  data.modules.forEach(([, parent], module) => {
    top[module] = parent >= 0 && top[parent] >= 0 ? top[parent] : folded.has(module) ? module : -1;
  });
  const standsFor = new Int32Array(total);
  const place = new Map();
  const ids = [], counts = [];
  for (let node = 0; node < total; node++) {
    const module = data.module[node];
    const id = module >= 0 && top[module] >= 0 ? total + top[module] : node;
    if (!place.has(id)) { place.set(id, ids.length); ids.push(id); counts.push(0); }
    standsFor[node] = place.get(id);
    counts[standsFor[node]]++;
  }
  const out = ids.map(() => []), into = ids.map(() => []);
  const seen = new Set();
  for (let node = 0; node < total; node++) {
    for (const target of data.edges[node]) {
      const from = standsFor[node], to = standsFor[target];
      const key = from * ids.length + to;
      if (from === to || seen.has(key)) continue;
      seen.add(key);
      out[from].push(to);
      into[to].push(from);
    }
  }
  return { ids, counts, out, into, place };
}

// Layers by the longest way from a root; an edge back to an earlier module does not count.
function layersOf(graph) {
  const rank = new Int32Array(graph.ids.length);
  const layers = [];
  for (let box = 0; box < graph.ids.length; box++) {
    for (const from of graph.into[box]) if (from < box) rank[box] = Math.max(rank[box], rank[from] + 1);
    while (layers.length <= rank[box]) layers.push([]);
    layers[rank[box]].push(box);
  }
  return { rank, layers };
}

function spread(layer, wanted, x) {
  layer.sort((a, b) => wanted[a] - wanted[b] || a - b);
  let shift = 0, last = -Infinity;
  for (const box of layer) {
    x[box] = Math.max(wanted[box], last + BOX.across);
    last = x[box];
    shift += x[box] - wanted[box];
  }
  shift /= layer.length;
  for (const box of layer) x[box] -= shift;
}

function laidOut(graph) {
  const { rank, layers } = layersOf(graph);
  const x = new Float64Array(graph.ids.length);
  const mean = (boxes, otherwise) => boxes.length ? boxes.reduce((sum, box) => sum + x[box], 0) / boxes.length : otherwise;
  layers.forEach((layer) => {
    const wanted = {};
    layer.forEach((box, number) => { wanted[box] = mean(graph.into[box].filter((from) => rank[from] < rank[box]), number * BOX.across); });
    spread(layer, wanted, x);
  });
  [...layers].reverse().forEach((layer) => {
    const wanted = {};
    layer.forEach((box) => { wanted[box] = mean(graph.out[box].filter((to) => rank[to] > rank[box]), x[box]); });
    spread(layer, wanted, x);
  });
  layers.forEach((layer) => layer.sort((a, b) => x[a] - x[b]));
  return { rank, layers, x };
}
