package console

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/xuri/excelize/v2"

	"dropbell/domain/coupon"
	"dropbell/domain/job"
	"dropbell/domain/staff"
)

// sentList uploads a list for the template's page of lists.
func (b *browser) sentList(page, name, content string) string {
	b.Helper()
	return b.upload(page+"/new", name, content).is(303).header.Get("Location")
}

// A template whose state takes no lists says so, and offers no form.
func TestListsOfTemplatesThatTakeNone(t *testing.T) {
	g := newRig(t)
	b, chinese := g.as(staff.Marketer), g.chinese()
	for state, want := range map[string][2]string{
		"draft":     {"The template is a draft: its coupons cannot be given away yet. Publish it first.", "模板是草稿，还不能发放它的券。请先发布。"},
		"cancelled": {"The template was cancelled: its coupons can no longer be given away. Use another template.", "模板已取消，不能再发放它的券。请使用其他模板。"},
	} {
		d := g.draft(10, time.Hour)
		g.exec(`update templates set state = $2 where id = $1`, d.ID, state)
		page := fmt.Sprintf("/templates/%d/grants", d.ID)
		for _, at := range []string{page, page + "/new"} {
			b.get(at).is(200).has(want[0]).hasNot(`enctype="multipart/form-data"`, `href="`+page+`/new"`)
			chinese.get(at).is(200).has(want[1])
		}
		b.upload(page+"/new", "friends.csv", friends).is(409).has(want[0]).hasNot("Its current state does not allow this", "has changed")
		chinese.upload(page+"/new", "friends.csv", friends).is(409).has(want[1])
		g.as(staff.Viewer).get(page).is(200).hasNot(want[0])
	}
	if n := g.number(`select count(*) from uploads`) + g.number(`select count(*) from jobs`); n != 0 {
		t.Errorf("%d files and jobs were stored", n)
	}
}

// What was paused after the dry run says so, before and after the press.
func TestListOfAPausedTemplate(t *testing.T) {
	g := newRig(t)
	d := g.friends()
	b, chinese := g.as(staff.Marketer), g.chinese()
	dry := b.sentList(fmt.Sprintf("/templates/%d/grants", d.ID), "friends.csv", friends)
	early := b.post(dry+"/apply", url.Values{"reason": {"too early"}}).is(409)
	early.has("Only a dry run that is done can be applied. Wait until it has ended").hasNot("Perhaps it has changed")
	g.workGrants()
	b.get(dry).is(200).has(dry + "/apply").hasNot("The template is paused")
	g.exec(`update templates set state = 'paused' where id = $1`, d.ID)
	paused, resume := "The template is paused. Resume it, then give the coupons.", "模板已暂停。请先恢复，再发放。"
	b.get(dry).is(200).has(paused, fmt.Sprintf(`href="/templates/%d"`, d.ID)).hasNot(dry + "/apply")
	chinese.get(dry).is(200).has(resume)
	b.get(dry+"/apply").is(409).has(paused).hasNot("Its current state does not allow this", "Perhaps it has changed")
	b.post(dry+"/apply", url.Values{"reason": {"thanks"}}).is(409).has(paused, `value="thanks"`).hasNot("Its current state does not allow this")
	chinese.post(dry+"/apply", url.Values{"reason": {"谢谢"}}).is(409).has(resume)
	if n := g.number(`select count(*) from jobs`); n != 1 {
		t.Fatalf("%d jobs, want the dry run alone", n)
	}
	g.exec(`update templates set state = 'published' where id = $1`, d.ID)
	b.post(dry+"/apply", url.Values{"reason": {"thanks"}}).is(303)
}

// Other refusals about a state say which one it is, and what it allows.
func TestARefusalTellsTheState(t *testing.T) {
	g := newRig(t)
	d := g.published(10, time.Hour)
	g.exec(`update templates set state = 'closed' where id = $1`, d.ID)
	page := fmt.Sprintf("/templates/%d/edit", d.ID)
	g.as(staff.Marketer).get(page).is(409).has("The template is closed. Nothing of it can change any more.").hasNot("Perhaps it has changed")
	g.chinese().get(page).is(409).has("模板已结束，不能再做任何更改。").hasNot("也许在您查看之后")
}

// The lists of one template are told apart by their files.
func TestListsAreCalledByTheirFiles(t *testing.T) {
	g := newRig(t)
	d := g.friends()
	b := g.as(staff.Marketer)
	page := fmt.Sprintf("/templates/%d/grants", d.ID)
	first, second := b.sentList(page, "testers <July>.csv", friends), b.sentList(page, "neighbours.csv", friends)
	g.workGrants()
	given := b.post(first+"/apply", url.Values{"reason": {"thanks"}}).is(303).header.Get("Location")
	g.workGrants()
	back := b.post(given+"/takeback", url.Values{"reason": {"the wrong list"}}).is(303).header.Get("Location")
	g.workGrants()
	for _, at := range []string{"/grants", page} {
		text := b.get(at).is(200).has("testers &lt;July&gt;.csv", "neighbours.csv").text()
		if n := strings.Count(text, "July"); n != 2 {
			t.Errorf("%s names the file %d times, want once for the dry run and once for the giving: %s", at, n, text)
		}
	}
	b.get("/grants").is(200).has(d.Name)
	for _, at := range []string{first, given, back} {
		b.get(at).is(200).has("List: testers &lt;July&gt;.csv")
	}
	b.get(second).is(200).has("List: neighbours.csv")
	g.chinese().get(second).is(200).has("名单：neighbours.csv")
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(b.get("/grants.csv").is(200).body, "\uFEFF"))).ReadAll()
	g.must(err)
	if last := rows[0][len(rows[0])-1]; last != "file" || rows[1][len(rows[1])-1] != "testers <July>.csv" {
		t.Errorf("the export ends with %s: %v", last, rows[1])
	}

	work := strings.Replace(second, "/grants/", "/jobs/", 1)
	b.get(work).is(200).has("File: neighbours.csv")

	// Ids without a file, and a job of a program that did not keep the name.
	g.exec(`update jobs set params = params - 'file' || '{"ids": true}' where '/grants/' || id = $1`, second)
	b.get("/grants").is(200).has(">User ids</a>")
	b.get(second).is(200).has("List: User ids")
	g.chinese().get(second).is(200).has("名单：用户编号")
	b.get(work).is(200).hasNot("neighbours.csv")
	g.exec(`update jobs set params = params - 'file' - 'ids' where kind like 'coupons.%'`)
	b.get("/grants").is(200).has(">" + d.Name + "</a>")
	b.get(second).is(200).hasNot("List:")
}

// A list that names nobody is refused like an empty file, whatever its format.
func TestListWithoutRows(t *testing.T) {
	g := newRig(t)
	d := g.friends()
	b, chinese := g.as(staff.Marketer), g.chinese()
	page := fmt.Sprintf("/templates/%d/grants", d.ID)
	workbook := func(cells ...string) string {
		f := excelize.NewFile()
		for i, v := range cells {
			g.must(f.SetCellValue("Sheet1", fmt.Sprintf("A%d", i+1), v))
		}
		var raw bytes.Buffer
		g.must(f.Write(&raw))
		return raw.String()
	}
	for name, content := range map[string]string{"heading.csv": "user_id\n", "no-line-end.csv": "user_id", "blank.csv": "user_id\n\n\n \n", "two.csv": "name;id\r\n;\r\n",
		"heading.xlsx": workbook("user_id"), "blank.xlsx": workbook("user_id", "", " ")} {
		b.upload(page+"/new", name, content).is(422).has("the list has no rows; add one for each user below the heading", `enctype="multipart/form-data"`)
		chinese.upload(page+"/new", name, content).is(422).has("名单没有数据行；请在表头下方为每个用户添加一行")
	}
	b.upload(page+"/new", "blank.csv", "\n \n").is(422).has("the file is empty")
	if n := g.number(`select count(*) from jobs`); n != 0 {
		t.Fatalf("%d jobs were started", n)
	}
	// One id needs no heading, and a row that cannot be read is one.
	for name, content := range map[string]string{"one.csv": "1001", "unreadable.csv": "user_id\n" + strings.Repeat("x", 5000) + "\n", "one.xlsx": workbook("user_id", "1001")} {
		b.sentList(page, name, content)
	}
}

// What only the worker sees, as when the job is of another program, ends the
// list; and one that such a program has taken is not given.
func TestListWithoutRowsIsNeverGiven(t *testing.T) {
	g := newRig(t)
	d := g.friends()
	b, chinese := g.as(staff.Marketer), g.chinese()
	page := fmt.Sprintf("/templates/%d/grants", d.ID)
	empty, old := b.sentList(page, "empty.csv", "1001"), b.sentList(page, "old.csv", "1001")
	g.exec(`update upload_parts set content = convert_to(E'user_id\n', 'utf8') where upload_id = (select upload_id from jobs where '/grants/' || id = $1)`, empty)
	g.exec(`update uploads set bytes = 8 where id = (select upload_id from jobs where '/grants/' || id = $1)`, empty)
	g.workGrants()
	g.exec(`update jobs set total = 0, done = 0, failed = 0, result = '{"read": true}' where '/grants/' || id = $1`, old)
	for _, at := range []string{empty, strings.Replace(empty, "grants", "jobs", 1)} {
		b.get(at).is(200).has("The list has no rows. It needs one for each user").hasNot(empty+"/apply", coupon.ErrNoGrants.Text)
		chinese.get(at).is(200).has("名单没有数据行。表头下方每个用户需要一行").hasNot(coupon.ErrNoGrants.Text)
	}
	if g.number(`select count(*) from jobs where '/grants/' || id = $1 and state = $2`, empty, job.Failed) != 1 {
		t.Error("the list has not failed")
	}
	b.get(old).is(200).hasNot(old + "/apply")
	b.post(old+"/apply", url.Values{"reason": {"x"}}).is(http.StatusConflict).has("there is nobody to give a coupon to")
	if n := g.number(`select count(*) from jobs`); n != 2 {
		t.Fatalf("%d jobs", n)
	}
}

// Both pages tell the limit and what to do, in the reader's language alone.
func TestListWithTooManyRows(t *testing.T) {
	g := newRig(t)
	d := g.friends()
	b := g.as(staff.Marketer)
	list := b.sentList(fmt.Sprintf("/templates/%d/grants", d.ID), "all.csv", "user_id\n"+strings.Repeat("1001\n", coupon.MaxGrants+1))
	g.workGrants()
	check := func() {
		t.Helper()
		for _, at := range []string{list, strings.Replace(list, "grants", "jobs", 1)} {
			b.get(at).is(200).has("A list has at most 100,000 rows. Split the file and upload the parts one by one.").hasNot("a list has at most")
			g.chinese().get(at).is(200).has("一份名单最多 100,000 行。请拆分文件，逐个上传。").hasNot("a list has at most")
		}
	}
	check()
	g.exec(`update jobs set detail = 'a list has at most 100000 rows'`) // as programs before this one said
	check()
}

// On a phone an odd number of figures leaves no hole among them.
func TestFiguresOfAListFillTheirLines(t *testing.T) {
	g := newRig(t)
	d := g.friends()
	member := g.hire(staff.Marketer)
	list := g.as(staff.Marketer).sentList(fmt.Sprintf("/templates/%d/grants", d.ID), "friends.csv", friends)
	g.workGrants()
	b := newTab(t)
	b.do(chromedp.EmulateViewport(390, 844))
	b.signIn(g, member)
	b.open(g.server.URL + list)
	b.sees("#grant", "Would get one", "Stock left")
	// What the figures leave uncovered, in square pixels: the lines between them.
	hole := evaluate[float64](b, `(() => {
		const area = e => e.getBoundingClientRect().width * e.getBoundingClientRect().height, all = document.querySelector(".work-stats");
		return [...all.children].reduce((left, e) => left - area(e), area(all));
	})()`)
	if hole > 3000 {
		t.Errorf("the figures leave %v square pixels empty", hole)
	}
}
