package coupons_test

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
	"dropbell/web/console/consoletest"
)

// A template whose state takes no lists says so, and offers no form.
func TestListsOfTemplatesThatTakeNone(t *testing.T) {
	g := consoletest.New(t)
	b, chinese := g.As(staff.Marketer), g.Chinese()
	for state, want := range map[string][2]string{
		"draft":     {"The drop is a draft: its coupons cannot be given away yet. Publish it first.", "抢券活动还是草稿，不能发放它的券。请先发布。"},
		"cancelled": {"The drop was cancelled: its coupons can no longer be given away. Use another drop.", "抢券活动已取消，不能再发放它的券。请使用其他抢券活动。"},
	} {
		d := g.Draft(10, time.Hour)
		g.Exec(`update templates set state = $2 where id = $1`, d.ID, state)
		page := fmt.Sprintf("/templates/%d/grants", d.ID)
		for _, at := range []string{page, page + "/new"} {
			b.Get(at).Is(200).Has(want[0]).HasNot(`enctype="multipart/form-data"`, `href="`+page+`/new"`)
			chinese.Get(at).Is(200).Has(want[1])
		}
		b.Upload(page+"/new", "friends.csv", friends).Is(409).Has(want[0]).HasNot("Its current state does not allow this", "has changed")
		chinese.Upload(page+"/new", "friends.csv", friends).Is(409).Has(want[1])
		g.As(staff.Viewer).Get(page).Is(200).HasNot(want[0])
	}
	if n := g.Number(`select count(*) from uploads`) + g.Number(`select count(*) from jobs`); n != 0 {
		t.Errorf("%d files and jobs were stored", n)
	}
}

// A template that was paused after the dry run says so, before and after the press.
func TestListOfAPausedTemplate(t *testing.T) {
	g := consoletest.New(t)
	d := g.Friends()
	b, chinese := g.As(staff.Marketer), g.Chinese()
	dry := b.SentList(fmt.Sprintf("/templates/%d/grants", d.ID), "friends.csv", friends)
	early := b.Post(dry+"/apply", url.Values{"reason": {"too early"}}).Is(409)
	early.Has("Only a dry run that is done can be applied. Wait until it has ended").HasNot("It may have changed")
	g.WorkGrants()
	b.Get(dry).Is(200).Has(dry + "/apply").HasNot("The drop is paused")
	g.Exec(`update templates set state = 'paused' where id = $1`, d.ID)
	paused, resume := "The drop is paused. Resume it, then give the coupons.", "抢券活动已暂停。请先恢复，再发放。"
	b.Get(dry).Is(200).Has(paused, fmt.Sprintf(`href="/templates/%d"`, d.ID)).HasNot(dry + "/apply")
	chinese.Get(dry).Is(200).Has(resume)
	b.Get(dry+"/apply").Is(409).Has(paused).HasNot("Its current state does not allow this", "It may have changed")
	b.Post(dry+"/apply", url.Values{"reason": {"thanks"}}).Is(409).Has(paused, `value="thanks"`).HasNot("Its current state does not allow this")
	chinese.Post(dry+"/apply", url.Values{"reason": {"谢谢"}}).Is(409).Has(resume)
	if n := g.Number(`select count(*) from jobs`); n != 1 {
		t.Fatalf("%d jobs, want the dry run alone", n)
	}
	g.Exec(`update templates set state = 'published' where id = $1`, d.ID)
	b.Post(dry+"/apply", url.Values{"reason": {"thanks"}}).Is(303)
}

// Other refusals because of a state name the state and the steps that it allows.
func TestARefusalTellsTheState(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, time.Hour)
	g.Exec(`update templates set state = 'closed' where id = $1`, d.ID)
	page := fmt.Sprintf("/templates/%d/edit", d.ID)
	g.As(staff.Marketer).Get(page).Is(409).Has("The drop is closed and can no longer be changed.").HasNot("It may have changed")
	g.Chinese().Get(page).Is(409).Has("抢券活动已结束，不能再更改。").HasNot("在您查看之后")
}

// The lists of one template are told apart by their files.
func TestListsAreCalledByTheirFiles(t *testing.T) {
	g := consoletest.New(t)
	d := g.Friends()
	b := g.As(staff.Marketer)
	page := fmt.Sprintf("/templates/%d/grants", d.ID)
	first, second := b.SentList(page, "testers <July>.csv", friends), b.SentList(page, "neighbours.csv", friends)
	g.WorkGrants()
	given := b.Post(first+"/apply", url.Values{"reason": {"thanks"}}).Is(303).Header.Get("Location")
	g.WorkGrants()
	back := b.Post(given+"/takeback", url.Values{"reason": {"the wrong list"}}).Is(303).Header.Get("Location")
	g.WorkGrants()
	for _, at := range []string{"/grants", page} {
		text := b.Get(at).Is(200).Has("testers &lt;July&gt;.csv", "neighbours.csv").Text()
		if n := strings.Count(text, "July"); n != 2 {
			t.Errorf("%s names the file %d times, want once for the dry run and once for the giving: %s", at, n, text)
		}
	}
	b.Get("/grants").Is(200).Has(d.Name)
	for _, at := range []string{first, given, back} {
		b.Get(at).Is(200).Has("List: testers &lt;July&gt;.csv")
	}
	b.Get(second).Is(200).Has("List: neighbours.csv")
	g.Chinese().Get(second).Is(200).Has("名单：neighbours.csv")
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(b.Get("/grants.csv").Is(200).Body, "\uFEFF"))).ReadAll()
	g.Must(err)
	if last := rows[0][len(rows[0])-1]; last != "file" || rows[1][len(rows[1])-1] != "testers <July>.csv" {
		t.Errorf("the export ends with %s: %v", last, rows[1])
	}

	work := strings.Replace(second, "/grants/", "/jobs/", 1)
	b.Get(work).Is(200).Has("File: neighbours.csv")

	// Ids without a file, and a file without a name.
	g.Exec(`update jobs set params = params - 'file' || '{"ids": true}' where '/grants/' || id = $1`, second)
	b.Get("/grants").Is(200).Has(">Customer IDs</a>")
	b.Get(second).Is(200).Has("List: Customer IDs")
	g.Chinese().Get(second).Is(200).Has("名单：客户编号")
	b.Get(work).Is(200).HasNot("neighbours.csv")
	g.Exec(`update jobs set params = params - 'file' - 'ids' where kind like 'coupons.%'`)
	b.Get("/grants").Is(200).Has(">" + d.Name + "</a>")
	b.Get(second).Is(200).HasNot("List:")
}

// A list without users is refused like an empty file, whatever its format.
func TestListWithoutRows(t *testing.T) {
	g := consoletest.New(t)
	d := g.Friends()
	b, chinese := g.As(staff.Marketer), g.Chinese()
	page := fmt.Sprintf("/templates/%d/grants", d.ID)
	workbook := func(cells ...string) string {
		f := excelize.NewFile()
		for i, v := range cells {
			g.Must(f.SetCellValue("Sheet1", fmt.Sprintf("A%d", i+1), v))
		}
		var raw bytes.Buffer
		g.Must(f.Write(&raw))
		return raw.String()
	}
	for name, content := range map[string]string{"heading.csv": "user_id\n", "no-line-end.csv": "user_id", "blank.csv": "user_id\n\n\n \n", "two.csv": "name;id\r\n;\r\n",
		"heading.xlsx": workbook("user_id"), "blank.xlsx": workbook("user_id", "", " ")} {
		b.Upload(page+"/new", name, content).Is(422).Has("the list has no rows; add one for each customer below the heading", `enctype="multipart/form-data"`)
		chinese.Upload(page+"/new", name, content).Is(422).Has("名单没有数据行；请在表头下方为每位客户添加一行")
	}
	b.Upload(page+"/new", "blank.csv", "\n \n").Is(422).Has("the file is empty")
	if n := g.Number(`select count(*) from jobs`); n != 0 {
		t.Fatalf("%d jobs were started", n)
	}
	// A list of one id needs no heading; a row that cannot be read is taken for a heading.
	for name, content := range map[string]string{"one.csv": "1001", "unreadable.csv": "user_id\n" + strings.Repeat("x", 5000) + "\n", "one.xlsx": workbook("user_id", "1001")} {
		b.SentList(page, name, content)
	}
}

// An error that only the worker finds, as when the job belongs to another program, ends the list. A
// list that such a program has taken is not given.
func TestListWithoutRowsIsNeverGiven(t *testing.T) {
	g := consoletest.New(t)
	d := g.Friends()
	b, chinese := g.As(staff.Marketer), g.Chinese()
	page := fmt.Sprintf("/templates/%d/grants", d.ID)
	empty, old := b.SentList(page, "empty.csv", "1001"), b.SentList(page, "old.csv", "1001")
	g.Exec(`update upload_parts set content = convert_to(E'user_id\n', 'utf8') where upload_id = (select upload_id from jobs where '/grants/' || id = $1)`, empty)
	g.Exec(`update uploads set bytes = 8 where id = (select upload_id from jobs where '/grants/' || id = $1)`, empty)
	g.WorkGrants()
	g.Exec(`update jobs set total = 0, done = 0, failed = 0, result = '{"read": true}' where '/grants/' || id = $1`, old)
	for _, at := range []string{empty, strings.Replace(empty, "grants", "jobs", 1)} {
		b.Get(at).Is(200).Has("The list has no rows. It needs one for each customer").HasNot(empty+"/apply", coupon.ErrNoGrants.Text)
		chinese.Get(at).Is(200).Has("名单没有数据行。表头下方每位客户需要一行").HasNot(coupon.ErrNoGrants.Text)
	}
	if g.Number(`select count(*) from jobs where '/grants/' || id = $1 and state = $2`, empty, job.Failed) != 1 {
		t.Error("the list has not failed")
	}
	b.Get(old).Is(200).HasNot(old + "/apply")
	b.Post(old+"/apply", url.Values{"reason": {"x"}}).Is(http.StatusConflict).Has("so no customer would get a coupon")
	if n := g.Number(`select count(*) from jobs`); n != 2 {
		t.Fatalf("%d jobs", n)
	}
}

// Both pages show the limit and what to do, in the reader's language alone.
func TestListWithTooManyRows(t *testing.T) {
	g := consoletest.New(t)
	d := g.Friends()
	b := g.As(staff.Marketer)
	list := b.SentList(fmt.Sprintf("/templates/%d/grants", d.ID), "all.csv", "user_id\n"+strings.Repeat("1001\n", coupon.MaxGrants+1))
	g.WorkGrants()
	check := func() {
		t.Helper()
		for _, at := range []string{list, strings.Replace(list, "grants", "jobs", 1)} {
			b.Get(at).Is(200).Has("A list has at most 100,000 rows. Split the file and upload the parts one by one.").HasNot("a list has at most")
			g.Chinese().Get(at).Is(200).Has("一份名单最多 100,000 行。请拆分文件，逐个上传。").HasNot("a list has at most")
		}
	}
	check()
	g.Exec(`update jobs set detail = 'a list has at most 100000 rows'`) // as programs before this one said
	check()
}

// On a phone an odd number of figures leaves no gap.
func TestFiguresOfAListFillTheirLines(t *testing.T) {
	g := consoletest.New(t)
	d := g.Friends()
	member := g.Hire(staff.Marketer)
	list := g.As(staff.Marketer).SentList(fmt.Sprintf("/templates/%d/grants", d.ID), "friends.csv", friends)
	g.WorkGrants()
	b := consoletest.NewTab(t)
	b.Do(chromedp.EmulateViewport(390, 844))
	b.SignIn(g, member)
	b.Open(g.Server.URL + list)
	b.Sees("#grant", "Would get one", "Stock left")
	// The area that the figures do not cover, in square pixels: the lines between them.
	hole := consoletest.Evaluate[float64](b, `(() => {
		const area = e => e.getBoundingClientRect().width * e.getBoundingClientRect().height, all = document.querySelector(".work-stats");
		return [...all.children].reduce((left, e) => left - area(e), area(all));
	})()`)
	if hole > 3000 {
		t.Errorf("the figures leave %v square pixels empty", hole)
	}
}
