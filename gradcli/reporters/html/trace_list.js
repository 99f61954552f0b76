// A list of which only the rows in sight exist, moved through by keyboard; rows are text, never markup.
class RowList {
  constructor(home, { role, row, chosen, key }) {
    Object.assign(this, { home, role, row, chosen, key, size: 0, cursor: -1, height: 26 });
    this.room = document.createElement("div");
    this.room.className = "room";
    home.append(this.room);
    home.addEventListener("scroll", () => this.draw());
    home.addEventListener("keydown", (event) => this.pressed(event));
    new ResizeObserver(() => this.draw()).observe(home);
  }

  resize(size) {
    this.size = size;
    this.room.style.height = `${size * this.height}px`;
    this.cursor = Math.min(this.cursor, size - 1);
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.home.scrollTop / this.height) - 4);
    const last = Math.min(this.size, Math.ceil((this.home.scrollTop + this.home.clientHeight) / this.height) + 4);
    const rows = [];
    for (let place = first; place < last; place++) {
      const row = document.createElement("div");
      row.id = `${this.home.id}-${place}`;
      row.setAttribute("role", this.role);
      row.setAttribute("aria-selected", String(place === this.cursor));
      row.style.top = `${place * this.height}px`;
      row.addEventListener("click", () => { this.home.focus({ preventScroll: true }); this.move(place); });
      this.row(place, row);
      rows.push(row);
    }
    this.room.replaceChildren(...rows);
    if (this.cursor >= 0) this.home.setAttribute("aria-activedescendant", `${this.home.id}-${this.cursor}`);
  }

  show(place) {
    this.cursor = place;
    if (place < 0) return this.draw();
    const above = place * this.height, below = above + this.height;
    if (above < this.home.scrollTop) this.home.scrollTop = above;
    else if (below > this.home.scrollTop + this.home.clientHeight) this.home.scrollTop = below - this.home.clientHeight;
    this.draw();
  }

  move(place) {
    if (!this.size) return;
    this.show(Math.max(0, Math.min(this.size - 1, place)));
    this.chosen(this.cursor);
  }

  pressed(event) {
    const page = Math.max(1, Math.floor(this.home.clientHeight / this.height) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.size, End: this.size };
    if (event.key in steps) this.move(this.cursor + steps[event.key]);
    else if (!this.key || !this.key(event.key, this.cursor)) return;
    event.preventDefault();
  }
}

function textRow(row, parts) {
  for (const [kind, text] of parts) {
    const part = document.createElement("span");
    part.className = kind;
    part.textContent = text;
    row.append(part);
  }
}
