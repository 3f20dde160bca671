// Draws SDFGs once DaCe's viewer is unpacked. COMMUNICATION and COLOUR are put in by viewer.py.
window.distspmdWaiting = window.distspmdWaiting || [];
window.distspmdDrawn = window.distspmdDrawn || {};

// The viewer asks each element for its colours, and then for its label, of which it keeps two.
function distspmdPaint() {
  const plain = SDFGElement.prototype.getCssProperty;
  SDFGElement.prototype.getCssProperty = function (renderer, name) {
    const node = (this.data && this.data.node) || {};
    if ("cached_far_label" in this && node.label)
      this.cached_far_label = this.cached_close_label = node.label;
    const own = node[COMMUNICATION] && name === "--node-background-color";
    return own ? COLOUR : plain.call(this, renderer, name);
  };
}

// The buttons stand above the drawing, and the small map where drawings seldom are.
function distspmdArrange(renderer, at) {
  const buttons = renderer.toolbar && renderer.toolbar[0];
  if (buttons) {
    buttons.style.position = "static";
    at.parentNode.insertBefore(buttons, at);
  }
  const map = renderer.minimap_canvas;
  if (map) Object.assign(map.style, { top: "auto", bottom: "8px" });
  distspmdLook(renderer, at);
}

// All of a program if its text can be read then, and else its beginning.
function distspmdLook(renderer, at) {
  const blocks = renderer.graph.nodes().map((name) => renderer.graph.node(name));
  const left = Math.min(...blocks.map((block) => block.x - block.width / 2));
  const right = Math.max(...blocks.map((block) => block.x + block.width / 2));
  const top = Math.min(...blocks.map((block) => block.y - block.height / 2));
  const bottom = Math.max(...blocks.map((block) => block.y + block.height / 2));
  const most = 1.3, edge = 10;
  const wide = Math.min(right - left + 2 * edge, most * at.clientWidth);
  const high = Math.min(bottom - top + 2 * edge, most * at.clientHeight);
  const first = blocks.reduce((one, other) => (one.y - one.height / 2 <= other.y - other.height / 2 ? one : other));
  const begin = Math.max(left - edge, Math.min(first.x - wide / 2, right + edge - wide));
  const seen = new DOMRect(begin, top - edge, wide, high);
  renderer.canvas_manager.set_view(seen, false);
  renderer.draw_async();
}

window.distspmdUnpack = async function (packed) {
  if (window.distspmdReady) return;
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.text = await new Response(unpacked).text();
  document.head.appendChild(script);
  distspmdPaint();
  window.distspmdReady = true;
  for (const draw of window.distspmdWaiting.splice(0)) draw();
};

window.distspmdDraw = function (name, sdfg) {
  const draw = () => {
    const at = document.getElementById(name);
    const text = JSON.stringify(sdfg);
    const renderer = new SDFGRenderer(
      checkCompatLoad(parse_sdfg(text)), at, undefined, null, null, false, null, null);
    distspmdArrange(renderer, at);
    window.distspmdDrawn[name] = renderer;
  };
  if (window.distspmdReady) draw();
  else window.distspmdWaiting.push(draw);
};
