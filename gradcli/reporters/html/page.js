"use strict";
(() => {
  const search = document.getElementById("search");
  const boxes = [...document.querySelectorAll("input[name=verdict]")];
  const cases = [...document.querySelectorAll("details.case")];
  const texts = cases.map((each) => each.querySelector("summary").textContent.toLowerCase() + "\n" + each.dataset.text);
  const count = document.getElementById("count");

  function choose() {
    const wanted = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    cases.forEach((each, number) => {
      const fits = wanted.has(each.dataset.verdict) && words.every((word) => texts[number].includes(word));
      each.hidden = !fits;
      shown += fits;
    });
    count.textContent = `${shown} of ${cases.length} cases shown`;
  }

  function unfold(open) {
    cases.forEach((each) => { if (!each.hidden) each.open = open; });
  }

  function follow() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.matches("details.case")) { target.hidden = false; target.open = true; target.scrollIntoView(); }
  }

  search.addEventListener("input", choose);
  boxes.forEach((box) => box.addEventListener("change", choose));
  document.getElementById("unfold").addEventListener("click", () => unfold(true));
  document.getElementById("fold").addEventListener("click", () => unfold(false));
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== search) { event.preventDefault(); search.focus(); }
    if (event.key === "Escape" && document.activeElement === search) { search.value = ""; choose(); }
  });
  window.addEventListener("beforeprint", () => unfold(true));
  window.addEventListener("hashchange", follow);
  document.querySelector(".tools").hidden = false;
  choose();
  follow();
})();
