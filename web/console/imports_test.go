package console

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"dropbell/adapters/postgres"
	tables "dropbell/adapters/sheet"
	"dropbell/domain/job"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// workPeople runs the waiting jobs about users, as a worker would.
func (g *rig) workPeople() {
	g.Helper()
	segments, files := postgres.NewSegments(g.db), tables.Tables{Open: postgres.NewUploads(g.db).OpenUpload}
	importer := &user.Importer{Store: postgres.NewUsers(g.db), Tables: files, Now: time.Now}
	w := &job.Worker{Store: postgres.NewJobs(g.db), Queue: idle{}, LeaseFor: time.Minute, Turn: time.Minute, Now: time.Now, Random: func() float64 { return 0 },
		Runners: map[string]job.Runner{user.CheckJob: importer, user.ImportJob: importer,
			segment.CountJob: &segment.Counter{Store: segments, Now: time.Now}, segment.ListJob: &segment.Filler{Store: segments, Tables: files, Now: time.Now}}}
	due, err := postgres.NewJobs(g.db).DueJobs(g.Context(), []string{user.CheckJob, user.ImportJob, segment.CountJob, segment.ListJob}, 100)
	g.must(err)
	for _, id := range due {
		g.must(w.Run(g.Context(), id))
	}
}

// upload sends a form with a file after the other fields.
func (b *browser) upload(path, name, content string, fields ...string) answer {
	b.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i := 0; i < len(fields); i += 2 {
		b.must(form.WriteField(fields[i], fields[i+1]))
	}
	part, err := form.CreateFormFile("file", name)
	b.must(err)
	_, err = part.Write([]byte(content))
	b.must(err)
	b.must(form.Close())
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, b.server.URL+path, &body)
	b.must(err)
	for k := range b.header {
		req.Header.Set(k, b.header.Get(k))
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	res, err := b.client.Do(req)
	b.must(err)
	defer res.Body.Close()
	var text bytes.Buffer
	_, err = text.ReadFrom(res.Body)
	b.must(err)
	return answer{b.T, "POST " + path, res.StatusCode, res.Header, text.String()}
}

func (g *rig) number(sql string, args ...any) (n int64) {
	g.Helper()
	g.must(g.sql.QueryRow(g.Context(), sql, args...).Scan(&n))
	return n
}

const members = "User ID;Name;E-Mail;Tier\n1001;Ann;ann@example.com;gold\n1002;Bob;not an address;silver\nx;Nobody;;\n1003;Cid;;7\n"

// Without scripts: upload, columns, check, import; pressing twice starts one
// job, and importing again changes nothing.
func TestImportUsers(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Marketer)
	b.get("/users/import").is(200).has("Import users", "Template (CSV)")
	b.get("/users/import/template.csv").is(200).has("id,name,email,phone,locale,timezone,opt_outs,quiet_hours,tier")
	b.upload("/users/import", "empty.csv", "").is(422).has("the file is empty").hasNot("choose a file")
	b.upload("/users/import", "p.png", "\x89PNG\x00\x00").is(422).has("not text in UTF-8")
	start := b.upload("/users/import", "members.csv", members).is(303).header.Get("Location")
	b.get(start).is(200).has("User ID", "E-Mail", "ann@example.com", "Tier")
	columns := url.Values{"target0": {"id"}, "target1": {"name"}, "target2": {"email"}, "target3": {"attribute"}, "name3": {"tier"}}
	wrong := url.Values{"target0": {"name"}, "target1": {"name"}, "target3": {"attribute"}, "name3": {"a b"}}
	b.post(start, wrong).is(422).has("one column must hold the user’s id", "another column has this already", "letters, digits, dots")
	check := b.post(start, columns).is(303).header.Get("Location")
	g.workPeople()
	b.get(check).is(200).has("A check stores nothing.", "New", "email: must be an e-mail address", "1002 | Bob | not an address | silver", start+"/apply?check=")
	if n := g.number(`select count(*) from users`); n != 0 {
		t.Fatalf("the check stored %d users", n)
	}
	id := strings.TrimPrefix(check, "/jobs/")
	b.get(start + "?check=" + id).is(200).has(`value="tier"`)
	apply := start + "/apply?check=" + id
	// Users belong to every shop: staff who are limited to some import none.
	limited := g.as(staff.Marketer, 10)
	limited.get(start).is(http.StatusForbidden)
	limited.post(start, columns).is(http.StatusForbidden)
	limited.get(apply).is(http.StatusForbidden)
	limited.post(apply, nil).is(http.StatusForbidden)
	b.get(apply).is(200).has("2 users are new.", "2 rows are left out")
	imported := b.post(apply, nil).is(303).header.Get("Location")
	b.post(apply, nil).to(imported)
	g.workPeople()
	b.get(imported).is(200).has("Import another file", "done")
	if n := g.number(`select count(*) from users where (id, name, email, attributes) in ((1001, 'Ann', 'ann@example.com', '{"tier": "gold"}'), (1003, 'Cid', '', '{"tier": 7}'))`); n != 2 {
		t.Fatalf("%d users are as the file says", n)
	}
	again := b.post(start, columns).is(303).header.Get("Location")
	g.workPeople()
	b.get(start+"/apply?check="+strings.TrimPrefix(again, "/jobs/")).is(200).has("0 users are new.", "0 users change.")
	viewer := g.as(staff.Viewer)
	viewer.get(start).is(http.StatusForbidden)
	viewer.upload("/users/import", "members.csv", members).is(http.StatusForbidden)
	b.get(start + "/apply?check=999").is(404)
	b.get("/users/import/999").is(404)
}

// chinese is a marketer who reads the other language.
func (g *rig) chinese() *browser {
	b := g.as(staff.Marketer)
	b.header.Set("Accept-Language", "zh-CN")
	return b
}

// A file that cannot be read is refused with what is wrong with it.
func TestFilesThatCannotBeRead(t *testing.T) {
	g := newRig(t)
	grants := fmt.Sprintf("/templates/%d/grants/new", g.friends().ID)
	made, _, err := g.Segments.CreateList(t.Context(), staff.System(), "Fair", 0, "")
	g.must(err)
	list := fmt.Sprintf("/segments/%d/file", made.ID)
	for file, c := range map[string][3]string{
		"old.xls":   {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "save it as XLSX or CSV", "旧版 XLS"},
		"wide.csv":  {"\xff\xfei\x00d\x00\n\x00", "save it as “CSV UTF-8” or XLSX", "不是 UTF-8 文本"},
		"big.xlsx":  {"PK\x03\x04" + strings.Repeat("z", 32<<20), "an XLSX file may have at most 32 MiB; save it as CSV", "XLSX 文件最大 32 MiB"},
		"void.csv":  {"", "the file is empty", "文件是空的"},
		"blank.csv": {"\n \n", "the file is empty", "文件是空的"},
	} {
		for _, path := range []string{"/users/import", grants, "/segments/lists/new", list} {
			g.as(staff.Marketer).upload(path, file, c[0], "name", "Fair").is(422).has(c[1]).hasNot("choose a file", "with a row of names</")
			g.chinese().upload(path, file, c[0], "name", "Fair").is(422).has(c[2])
		}
	}
	for _, path := range []string{"/segments/lists/new", list} {
		g.as(staff.Marketer).upload(path, "names.csv", "name,mail\nAnn,a@example.com\n", "name", "Fair").is(422).has("the file has no column of ids")
		g.chinese().upload(path, "names.csv", "name,mail\nAnn,a@example.com\n", "name", "Fair").is(422).has("文件中没有编号列")
		g.as(staff.Marketer).upload(path, "head.csv", "id\n", "name", "Fair").is(422).has("the file is empty")
	}
	if n := g.number(`select count(*) from segments`) + g.number(`select count(*) from jobs`); n != 1 {
		t.Errorf("%d lists and jobs, want the list that was there", n)
	}
}

// What a check leaves out, what it only remarks on and where it had to stop
// reading stand apart, and the page says how many there are.
func TestWhatACheckTells(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Marketer)
	file := "id,name,opt_outs\n7,Ann,\n7,Ann,\n8,Bea,fax\n9,Lee, Ann,sms\n" + strings.Repeat("x,y,\n", 10)
	columns := url.Values{"target0": {"id"}, "target1": {"name"}, "target2": {"opt_outs"}}
	check := func(file string) string {
		at := b.post(b.upload("/users/import", "members.csv", file).is(303).header.Get("Location"), columns).is(303).header.Get("Location")
		g.workPeople()
		return at
	}
	at := check(file + "10,\"Cid,\n11,Dan,\n")
	page := b.get(at).is(200).has("The file was read only up to line 16", "nothing behind it could be read", "The first 10 of 13 are shown; the CSV has all.", at+"/errors.csv",
		"A check stores nothing. A row that repeats", "opt_outs: must be channels such as email or sms, separated by spaces", "the row has 4 cells and the heading only 3; put quotes around text with commas")
	failed, notes, _ := strings.Cut(page.body, "Done, with remarks")
	if !strings.Contains(notes, "appears again on line 3") || strings.Contains(failed, "appears again") {
		t.Error("a row that is imported stands among those that are not")
	}
	g.chinese().get(at).is(200).has("文件只读到第 16 行", "引号没有闭合；其后的内容都无法读取", "此处只显示前 10 项，共 13 项", "此行有 4 个单元格，而表头只有 3 个", "须为方式名称", "未略过，但请留意", "检查不会保存任何内容")
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(b.get(at+"/errors.csv").is(200).body, "\uFEFF"))).ReadAll()
	g.must(err)
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
	b.get(twice).is(200).has("appears again on line 3").hasNot("Failures", "read only up to")
	again := strings.ReplaceAll(between(b.get(twice).body[strings.Index(b.get(twice).body, "/users/import/"):], "/users", `"`), "&amp;", "&")
	b.get("/users"+again).is(200).has("1 user is new.", "1 user changes.", "1 row repeats a user from further up in the file; the last row counts.")
	b.get(check(file)).is(200).has("The first 10 of 12 are shown").hasNot("read only up to")
	viewer := g.as(staff.Viewer)
	viewer.get(at).is(200).hasNot("appears again", "read only up to")
}

// A file with errors in a real browser: every step is seen and accessible.
func TestImportUsersWithErrorsInTheBrowser(t *testing.T) {
	g := newRig(t)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	file := filepath.Join(t.TempDir(), "members.csv")
	g.must(os.WriteFile(file, []byte(members), 0o600))
	b.open(g.server.URL + "/users/import")
	b.accessible("choosing a file")
	b.do(chromedp.SetUploadFiles(chromedp.CSS("#f-file"), []string{file}))
	b.press("main", "Upload")
	b.sees("main", "Contents of the columns", "ann@example.com")
	b.accessible("choosing columns")
	b.press("main", "Check file")
	b.sees("main", "Not begun yet.")
	g.workPeople()
	b.sees("#job", "A check stores nothing.", "Left out", "email: must be an e-mail address", "id: must be a positive whole number")
	b.accessible("what the import would do")
	b.press("#job", "Import")
	b.sees("#dialog", "2 users are new.", "2 rows are left out")
	b.press("#dialog", "Import")
	b.sees("main", "The import has begun.")
	g.workPeople()
	b.sees("#job", "done", "Import another file")
	if n := g.number(`select count(*) from users`); n != 2 {
		t.Fatalf("%d users", n)
	}
}
