// What the theme leaves out for readers with a keyboard, a screen reader or a phone.
window.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("pre, .table-wrapper, div.math").forEach((block) => {
    if (block.scrollWidth > block.clientWidth) block.tabIndex = 0;
  });
  document.querySelectorAll("article img").forEach((picture) => { // opens at full size
    if (picture.closest("a, .sphx-glr-thumbcontainer")) return;
    const link = document.createElement("a");
    link.href = picture.src;
    link.className = ["only-light", "only-dark"].filter((name) => picture.classList.contains(name)).join(" ");
    link.setAttribute("aria-label", `${picture.alt || "Picture"} at full size`);
    picture.replaceWith(link);
    link.append(picture);
  });
  document.querySelectorAll(".sphx-glr-thumbcontainer a").forEach((link) => {
    link.setAttribute("aria-label", link.textContent);
  });
  document.querySelectorAll("dt.sig dl").forEach((list) => { // arguments are no definitions
    const lines = document.createElement("div");
    lines.className = "arguments";
    for (const argument of list.children) {
      const line = document.createElement("div");
      line.append(...argument.childNodes);
      lines.append(line);
    }
    list.replaceWith(lines);
  });
  const results = document.getElementById("search-results");
  if (results) {
    const heading = document.createElement("h1");
    heading.textContent = "Search";
    results.before(heading);
  }
  document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "All pages");
  document.querySelector(".toc-drawer")?.setAttribute("aria-label", "On this page");
});
