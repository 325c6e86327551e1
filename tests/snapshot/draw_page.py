"""The timeline page in a browser: it draws, zooms, moves, hides a layer, and logs no error.

usage: draw_page.py RECOMPUTE MAKE_SNAPSHOT
Skipped where there is no Chromium.
"""
import json, pathlib, re, shutil, subprocess, sys, tempfile

DRIVE = r"""<script>
const send = (kind, name, o) => boards[0].dispatchEvent(new kind(name, {bubbles: true, cancelable: true, ...o}));
const box = boards[0].getBoundingClientRect(), seen = {end, peak: here.textContent};
const painted = () => {
  const all = boards[0].getContext('2d').getImageData(0, 0, boards[0].width, boards[0].height).data;
  let n = 0;
  for (let i = 3; i < all.length; i += 4) n += all[i] > 0;
  return n / (all.length / 4);
};
seen.painted = painted();
send(WheelEvent, 'wheel', {clientX: box.left + box.width / 2, deltaY: -700});
seen.zoomed = [low, high];
send(MouseEvent, 'mousedown', {clientX: box.left + 300});
send(MouseEvent, 'mousemove', {clientX: box.left + 200});
dispatchEvent(new MouseEvent('mouseup'));
seen.moved = [low, high];
seen.ceiling = ceiling();
document.querySelector('#legend button').click();
seen.ceilingWithout = ceiling();
seen.repainted = painted();
send(MouseEvent, 'mousemove', {clientX: box.left + 400});
seen.pointed = here.textContent;
send(MouseEvent, 'dblclick', {});
seen.all = [low, high];
const out = document.createElement('output');
out.id = 'seen';
out.textContent = JSON.stringify(seen);
document.body.append(out);
</script></body>"""


def browse(chromium, page, folder):
    done = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
                           f"--user-data-dir={folder}/profile", "--window-size=1200,900", "--dump-dom",
                           page.as_uri()], capture_output=True, text=True, timeout=200)
    errors = [line for line in done.stderr.splitlines() if "CONSOLE" in line and "willReadFrequently" not in line]
    found = re.search(r'<output id="seen">(.*?)</output>', done.stdout, re.S)
    assert not errors, errors
    assert found, "the script of the page did not run"
    return json.loads(found.group(1).replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))


def check(seen):
    span = lambda range_: range_[1] - range_[0]
    assert seen["painted"] > 0.2, seen
    assert seen["peak"].startswith("at the peak in view"), seen
    assert 0 < span(seen["zoomed"]) < seen["end"] / 2, seen
    assert abs(span(seen["moved"]) - span(seen["zoomed"])) < 1e-9 * seen["end"], seen
    assert seen["moved"][0] > seen["zoomed"][0], seen
    assert seen["ceilingWithout"] < seen["ceiling"], seen
    assert seen["repainted"] > 0.05, seen
    assert re.match(r"at [0-9]", seen["pointed"]) and "\ntotal" in seen["pointed"], seen
    assert seen["all"] == [0, seen["end"]], seen


def main(program, make_snapshot):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        print("skipped: there is no Chromium")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        runs = [folder / "a.pickle", folder / "b.pickle"]
        for seed, run in enumerate(runs):
            subprocess.run([sys.executable, make_snapshot, "-o", run, "--events", "6000", "--seed", str(seed)], check=True)
        for options in ([], ["--events"]):
            page = folder / "page.html"
            subprocess.run([program, "snapshot", "timeline", *runs, page, *options], check=True, stdout=subprocess.DEVNULL)
            text = page.read_text()
            assert text.count("</body>") == 1
            page.write_text(text.replace("</body>", DRIVE))
            check(browse(chromium, page, folder))
    print("the page draws, zooms, moves and hides")


main(*sys.argv[1:])
