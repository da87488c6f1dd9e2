package audience_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

const members = "User ID;Name;E-Mail;Tier\n1001;Ann;ann@example.com;gold\n1002;Bob;not an address;silver\nx;Nobody;;\n1003;Cid;;7\n"

// Without scripts: upload, columns, check, import. Pressing the button twice starts one job, and
// importing again changes nothing.
func TestImportUsers(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	b.Get("/users/import").Is(200).Has("Import customers", "Sample file (CSV)")
	b.Get("/users/import/template.csv").Is(200).Has("id,name,email,phone,phone_verified,locale,timezone,household,opt_outs,quiet_hours,tier")
	b.Upload("/users/import", "empty.csv", "").Is(422).Has("the file is empty").HasNot("choose a file")
	b.Upload("/users/import", "p.png", "\x89PNG\x00\x00").Is(422).Has("not text in UTF-8")
	start := b.Upload("/users/import", "members.csv", members).Is(303).Header.Get("Location")
	b.Get(start).Is(200).Has("Customer ID", "E-Mail", "ann@example.com", "Tier")
	columns := url.Values{"target0": {"id"}, "target1": {"name"}, "target2": {"email"}, "target3": {"attribute"}, "name3": {"tier"}}
	wrong := url.Values{"target0": {"name"}, "target1": {"name"}, "target3": {"attribute"}, "name3": {"a b"}}
	b.Post(start, wrong).Is(422).Has("one column must hold the customer’s ID", "another column has this already", "letters, digits, dots")
	check := b.Post(start, columns).Is(303).Header.Get("Location")
	g.WorkPeople()
	b.Get(check).Is(200).Has("A check stores nothing.", "New", "email: must be an e-mail address", "1002 | Bob | not an address | silver", start+"/apply?check=")
	if n := g.Number(`select count(*) from users`); n != 0 {
		t.Fatalf("the check stored %d users", n)
	}
	id := strings.TrimPrefix(check, "/jobs/")
	b.Get(start + "?check=" + id).Is(200).Has(`value="tier"`)
	apply := start + "/apply?check=" + id
	// Users belong to every shop, so staff who are limited to some shops cannot import users.
	limited := g.As(staff.Marketer, 10)
	limited.Get(start).Is(http.StatusForbidden)
	limited.Post(start, columns).Is(http.StatusForbidden)
	limited.Get(apply).Is(http.StatusForbidden)
	limited.Post(apply, nil).Is(http.StatusForbidden)
	b.Get(apply).Is(200).Has("2 customers are new.", "2 rows are left out")
	imported := b.Post(apply, nil).Is(303).Header.Get("Location")
	b.Post(apply, nil).To(imported)
	g.WorkPeople()
	b.Get(imported).Is(200).Has("Import another file", "Done")
	if n := g.Number(`select count(*) from users where (id, name, email, attributes) in ((1001, 'Ann', 'ann@example.com', '{"tier": "gold"}'), (1003, 'Cid', '', '{"tier": 7}'))`); n != 2 {
		t.Fatalf("%d users are as the file says", n)
	}
	again := b.Post(start, columns).Is(303).Header.Get("Location")
	g.WorkPeople()
	b.Get(start+"/apply?check="+strings.TrimPrefix(again, "/jobs/")).Is(200).Has("0 customers are new.", "0 customers change.")
	viewer := g.As(staff.Viewer)
	viewer.Get(start).Is(http.StatusForbidden)
	viewer.Upload("/users/import", "members.csv", members).Is(http.StatusForbidden)
	b.Get(start + "/apply?check=999").Is(404)
	b.Get("/users/import/999").Is(404)
}

// A file that cannot be read is refused with the reason.
func TestFilesThatCannotBeRead(t *testing.T) {
	g := consoletest.New(t)
	grants := fmt.Sprintf("/templates/%d/grants/new", g.Friends().ID)
	made, _, err := g.Segments.CreateList(t.Context(), staff.System(), "Fair", 0, "")
	g.Must(err)
	list := fmt.Sprintf("/segments/%d/file", made.ID)
	for file, c := range map[string][3]string{
		"old.xls":   {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "save it as XLSX or CSV", "旧版 XLS"},
		"wide.csv":  {"\xff\xfei\x00d\x00\n\x00", "save it as “CSV UTF-8” or XLSX", "不是 UTF-8 文本"},
		"big.xlsx":  {"PK\x03\x04" + strings.Repeat("z", 32<<20), "an XLSX file may have at most 32 MiB; save it as CSV", "XLSX 文件最大 32 MiB"},
		"void.csv":  {"", "the file is empty", "文件是空的"},
		"blank.csv": {"\n \n", "the file is empty", "文件是空的"},
	} {
		for _, path := range []string{"/users/import", grants, "/segments/lists/new", list} {
			g.As(staff.Marketer).Upload(path, file, c[0], "name", "Fair").Is(422).Has(c[1]).HasNot("choose a file", "with a row of names</")
			g.Chinese().Upload(path, file, c[0], "name", "Fair").Is(422).Has(c[2])
		}
	}
	for _, path := range []string{"/segments/lists/new", list} {
		g.As(staff.Marketer).Upload(path, "names.csv", "name,mail\nAnn,a@example.com\n", "name", "Fair").Is(422).Has("the file has no column of ids")
		g.Chinese().Upload(path, "names.csv", "name,mail\nAnn,a@example.com\n", "name", "Fair").Is(422).Has("文件中没有编号列")
		g.As(staff.Marketer).Upload(path, "head.csv", "id\n", "name", "Fair").Is(422).Has("the file is empty")
	}
	if n := g.Number(`select count(*) from segments`) + g.Number(`select count(*) from jobs`); n != 1 {
		t.Errorf("%d lists and jobs, want the list that was there", n)
	}
}

// Three things are shown separately with their counts: rows that a check leaves out, rows that only
// have a note, and the place where the check had to stop reading.
func TestWhatACheckTells(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	file := "id,name,opt_outs\n7,Ann,\n7,Ann,\n8,Bea,fax\n9,Lee, Ann,sms\n" + strings.Repeat("x,y,\n", 10)
	columns := url.Values{"target0": {"id"}, "target1": {"name"}, "target2": {"opt_outs"}}
	check := func(file string) string {
		at := b.Post(b.Upload("/users/import", "members.csv", file).Is(303).Header.Get("Location"), columns).Is(303).Header.Get("Location")
		g.WorkPeople()
		return at
	}
	at := check(file + "10,\"Cid,\n11,Dan,\n")
	page := b.Get(at).Is(200).Has("The file was read only up to line 16", "nothing behind it could be read", "The first 10 of 13 are shown; the CSV has all.", at+"/errors.csv",
		"A check stores nothing. A row that repeats", "opt_outs: must be channels such as email or sms, separated by spaces", "the row has 4 cells and the heading only 3; put quotes around text with commas")
	failed, notes, _ := strings.Cut(page.Body, "Done, with remarks")
	if !strings.Contains(notes, "appears again on line 3") || strings.Contains(failed, "appears again") {
		t.Error("a row that is imported stands among those that are not")
	}
	g.Chinese().Get(at).Is(200).Has("文件只读到第 16 行", "引号没有闭合，其后的内容都无法读取", "此处只显示前 10 项，共 13 项", "此行有 4 个单元格，而表头只有 3 个", "须为渠道名称", "已完成，但请留意", "检查不会保存任何内容")
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(b.Get(at+"/errors.csv").Is(200).Body, "\uFEFF"))).ReadAll()
	g.Must(err)
	kinds := map[string]int{}
	for _, row := range rows {
		if kinds[row[3]]++; row[3] == "note" && !strings.Contains(row[2], "appears again on line 3") {
			t.Errorf("%q is no note", row)
		}
	}
	if kinds["kind"] != 1 || kinds["note"] != 1 || kinds["failed"] != 13 || len(kinds) != 3 {
		t.Errorf("kinds of rows %v", kinds)
	}
	twice := check("id,name,opt_outs\n7,Ann,\n7,Bea,\n")
	b.Get(twice).Is(200).Has("appears again on line 3").HasNot("Failures", "read only up to")
	again := strings.ReplaceAll(consoletest.Between(b.Get(twice).Body[strings.Index(b.Get(twice).Body, "/users/import/"):], "/users", `"`), "&amp;", "&")
	b.Get("/users"+again).Is(200).Has("1 customer is new.", "1 customer changes.", "1 row repeats a customer from further up in the file; the last row counts.")
	b.Get(check(file)).Is(200).Has("The first 10 of 12 are shown").HasNot("read only up to")
	viewer := g.As(staff.Viewer)
	viewer.Get(at).Is(200).HasNot("appears again", "read only up to")
}

// A file with errors in a real browser: every step is seen and accessible.
func TestImportUsersWithErrorsInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	file := filepath.Join(t.TempDir(), "members.csv")
	g.Must(os.WriteFile(file, []byte(members), 0o600))
	b.Open(g.Server.URL + "/users/import")
	b.Accessible("choosing a file")
	b.Do(chromedp.SetUploadFiles(chromedp.CSS("#f-file"), []string{file}))
	b.Press("main", "Upload")
	b.Sees("main", "Contents of the columns", "ann@example.com")
	b.Accessible("choosing columns")
	b.Press("main", "Check file")
	b.Sees("main", "Not begun yet.")
	g.WorkPeople()
	b.Sees("#job", "A check stores nothing.", "Left out", "email: must be an e-mail address", "id: must be a positive whole number")
	b.Accessible("what the import would do")
	b.Press("#job", "Import")
	b.Sees("#dialog", "2 customers are new.", "2 rows are left out")
	b.Press("#dialog", "Import")
	b.Sees("main", "The import has begun.")
	g.WorkPeople()
	b.Sees("#job", "Done", "Import another file")
	if n := g.Number(`select count(*) from users`); n != 2 {
		t.Fatalf("%d users", n)
	}
}
