package console

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
	b.get(check).is(200).has("Nothing is stored yet", "New", "email: must be an e-mail address", "1002 | Bob | not an address | silver", start+"/apply?check=")
	if n := g.number(`select count(*) from users`); n != 0 {
		t.Fatalf("the check stored %d users", n)
	}
	id := strings.TrimPrefix(check, "/jobs/")
	b.get(start + "?check=" + id).is(200).has(`value="tier"`)
	apply := start + "/apply?check=" + id
	// A file belongs to no shop: who is limited to some sees their own.
	limited := g.as(staff.Marketer, 10)
	limited.get(start).is(404)
	limited.post(start, columns).is(404)
	limited.get(apply).is(404)
	limited.post(apply, nil).is(404)
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
	for file, c := range map[string][3]string{
		"old.xls":   {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "save it as XLSX or CSV", "旧版 XLS"},
		"wide.csv":  {"\xff\xfei\x00d\x00\n\x00", "save it as “CSV UTF-8” or XLSX", "不是 UTF-8 文本"},
		"big.xlsx":  {"PK\x03\x04" + strings.Repeat("z", 32<<20), "an XLSX file may have at most 32 MiB; save it as CSV", "XLSX 文件最大 32 MiB"},
		"void.csv":  {"", "the file is empty", "文件是空的"},
		"blank.csv": {"\n \n", "the file is empty", "文件是空的"},
	} {
		for _, path := range []string{"/users/import", grants} {
			g.as(staff.Marketer).upload(path, file, c[0]).is(422).has(c[1]).hasNot("choose a file", "with a row of names</")
			g.chinese().upload(path, file, c[0]).is(422).has(c[2])
		}
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
		"opt_outs: must be channels such as email or sms, separated by spaces", "the row has 4 cells and the heading only 3; put quotes around text with commas")
	failed, notes, _ := strings.Cut(page.body, "Not left out, but worth a look")
	if !strings.Contains(notes, "appears again on line 3") || strings.Contains(failed, "appears again") {
		t.Error("a row that is imported stands among those that are not")
	}
	g.chinese().get(at).is(200).has("文件只读到第 16 行", "引号没有闭合；其后的内容都无法读取", "此处只显示前 10 项，共 13 项", "此行有 4 个单元格，而表头只有 3 个", "须为渠道名称", "未略过，但请留意")
	b.get(check("id,name,opt_outs\n7,Ann,\n7,Ann,\n")).is(200).has("appears again on line 3").hasNot("What could not be done", "read only up to")
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
	b.sees("main", "What the columns hold", "ann@example.com")
	b.accessible("choosing columns")
	b.press("main", "Check file")
	b.sees("main", "Not begun yet.")
	g.workPeople()
	b.sees("#job", "Nothing is stored yet", "Left out", "email: must be an e-mail address", "id: must be a positive whole number")
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

// The tree is built by buttons that are form submits, saved, read, estimated,
// counted, copied and deleted.
func TestSegmentPages(t *testing.T) {
	g := newRig(t)
	g.exec(`insert into users (id, locale, attributes) values (1, 'zh-CN', '{"tier": "gold"}'), (2, 'en', '{"tier": "gold"}'), (3, 'en', '{}')`)
	b := g.as(staff.Marketer)
	b.get("/segments").is(200).has("No segments yet")
	b.get("/segments/new").is(200).has(`name="r.match"`, `name="r.0.field"`)
	form := url.Values{"name": {"Gold"}, "r.match": {"all"}, "r.0.field": {"attribute"}, "r.0.name": {"tier"}, "r.0.op": {"is"}, "r.0.value": {"gold"}}
	with := func(pairs ...string) url.Values {
		v := url.Values{}
		for k, list := range form {
			v[k] = list
		}
		for i := 0; i < len(pairs); i += 2 {
			v.Set(pairs[i], pairs[i+1])
		}
		return v
	}
	b.post("/segments/new", with("do", "estimate")).is(200).has("2 users", `value="gold"`)
	b.post("/segments/new", with("do", "condition:r")).is(200).has(`name="r.1.field"`, `value="Gold"`)
	b.post("/segments/new", with("do", "group:r")).is(200).has(`name="r.1.match"`, `name="r.1.0.field"`)
	b.post("/segments/new", with("do", "remove:r.0")).is(200).hasNot(`name="r.0.field"`)
	b.post("/segments/new", with("do", "remove:r.9.x")).is(200).has(`name="r.0.field"`)
	// Another field brings its own operators and drops what no longer fits.
	b.post("/segments/new", with("r.0.field", "contact", "do", "change")).is(200).has("is not known:").hasNot(`name="r.0.name"`)
	b.post("/segments/new", with("r.0.field", "contact", "r.0.op", "has", "r.0.kind", "contact", "r.0.value", "email", "do", "change")).is(200).has(`name="r.0.kind" value="contact"`, `value="email" selected`)
	b.post("/segments/new", with("r.0.field", "created", "r.0.op", "has", "r.0.kind", "contact", "r.0.value", "email", "do", "change")).is(200).has(`name="r.0.kind" value="days"`).hasNot(`value="email"`)
	b.post("/segments/new", with("r.0.field", "locale", "r.0.op", "has", "r.0.kind", "contact", "r.0.value", "email", "do", "change")).is(200).hasNot(`value="email"`)
	b.post("/segments/new", with("r.0.op", "one_of", "r.0.kind", "text", "do", "change")).is(200).has(`value="gold"`)
	// An estimate that cannot be told says why, as a save does.
	for _, why := range [][]string{{"created", "within_days", "email", "must be a number of days from 1 to 3650"}, {"locale", "one_of", "zz-@@", "must be a language tag"}, {"attribute", "is", "", "is required"}} {
		a := b.post("/segments/new", with("r.0.field", why[0], "r.0.op", why[1], "r.0.value", why[2], "do", "estimate")).is(200).has(why[3])
		if bar := between(a.body, `id="estimate"`, "</div>"); !strings.Contains(bar, "No estimate") || !strings.Contains(bar, why[3][:11]) {
			t.Errorf("%v: where the estimate would be stands %q", why, bar)
		}
	}
	b.post("/segments/new", with("name", "", "r.0.name", "", "do", "save")).is(422).has("is required", "letters, digits, dots")
	deep := with("do", "save", "r.1.match", "any", "r.1.0.field", "locale", "r.1.0.op", "one_of", "r.1.0.value", "zh, fr")
	at := b.post("/segments/new", deep).is(303).header.Get("Location")
	// A form that is sent twice makes one segment; its key stays while the tree grows.
	key := b.get("/segments/new").is(200).field("request_key")
	once := with("do", "save", "name", "Once", "request_key", key)
	b.post("/segments/new", with("do", "condition:r", "request_key", key)).is(200).has(`name="request_key" value="` + key + `"`)
	made := b.post("/segments/new", once).is(303).header.Get("Location")
	b.post("/segments/new", once).to(made)
	if n := g.number(`select count(*) from segments where name = 'Once'`) + g.number(`select count(*) from audit where action = 'segment.create'`); n != 3 {
		t.Errorf("%d segments and records, want one of each and a record of the other", n)
	}
	b.get(at).is(200).has("All of these hold", "“tier” is gold", "Language is one of zh, fr", at+"?estimate=1", "No campaign uses it").hasNot("1 user")
	b.get(at + "?estimate=1").is(200).has("1 user").hasNot(`hx-trigger="load"`)
	b.get(at + "/edit?estimate=1").is(200).has("1 user")
	edit := b.get(at+"/edit").is(200).has(`value="zh, fr"`, at+"/edit?estimate=1").hasNot("1 user")
	b.post(at+"/edit", with("do", "save", "name", "Golden", "version", edit.field("version"))).to(at)
	b.post(at+"/edit", with("do", "save", "name", "Other", "version", edit.field("version"))).is(http.StatusConflict).has("Somebody changed this segment", "<strong>Golden</strong>", "“tier” is gold", `value="Other"`)
	b.get(at+"?estimate=1").is(200).has("Golden", "2 users")
	count := b.post(at+"/count", nil).is(303).header.Get("Location")
	g.workPeople()
	b.get(count).is(200).has("done", at)
	b.get("/segments?q=gold").is(200).has("Golden", "By rules")
	b.get("/segments?after=x.y").is(200).has("Golden")
	b.post(at+"/clone", nil).is(303)
	b.get("/segments").is(200).has("Copy of Golden")
	b.get(at + "/delete").is(200).has("Delete “Golden”?")
	b.post(at+"/delete", nil).to("/segments")
	b.get(at).is(404)
	viewer := g.as(staff.Viewer)
	viewer.get("/segments").is(200).hasNot("/segments/new")
	viewer.post("/segments/new", deep).is(http.StatusForbidden)
	for _, junk := range []url.Values{{}, {"r.match": {"x"}, "do": {"save"}, "name": {"x"}}, {"r.field": {"x"}, "do": {"save"}}, {"do": {"condition:q"}}, {"r.match": {"all"}, "r.0.field": {"shoe"}, "do": {"estimate"}}} {
		if a := b.post("/segments/new", junk); a.status >= 500 {
			t.Errorf("%v: %d", junk, a.status)
		}
	}
}

func TestListPages(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Marketer)
	b.upload("/segments/lists/new", "ids.csv", "id\n1", "name", "").is(422).has("is required")
	b.upload("/segments/lists/new", "", "", "name", "Fair").is(422).has("choose a file", `value="Fair"`)
	made := b.upload("/segments/lists/new", "ids.csv", "id\n5\n6\nx\n", "name", "Fair").is(303).header.Get("Location")
	b.get(fmt.Sprintf("/segments/%d", g.number(`select max(id) from segments`))).is(200).has("waiting", made)
	g.workPeople()
	b.get(made).is(200).has("done", "Open the segment", "id: must be a positive whole number")
	chinese := g.chinese()
	chinese.get(made).is(200).has("id: 必须是正整数")
	chinese.get(made + "/errors.csv").is(200).has("id: 必须是正整数")
	id := g.number(`select max(id) from segments`)
	at := fmt.Sprintf("/segments/%d", id)
	b.get(at).is(200).has("List from files", "2 users", "Add ids from a file", "2 ids read", "done", made)
	b.get(at + "/file").is(200).has("Add to “Fair”")
	b.upload(at+"/file", "more.csv", "6\n7\n").is(303)
	g.workPeople()
	b.get(at).is(200).has("3 users")
	// Nobody takes a list for complete whose file could not be read.
	b.upload(at+"/file", "broken.xlsx", "PK nonsense").is(303)
	g.workPeople()
	b.get(at).is(200).has("3 users", "failed", "The file cannot be read.")
	b.post(at+"/edit", url.Values{"name": {"The fair"}, "version": {"1"}, "do": {"save"}}).to(at)
	// A campaign that has not read its audience keeps the list as it is.
	g.exec(`insert into campaigns (name, channel, content, audience, starts_at, ends_at, state, creator, created_by)
		values ('Spring', 1, '{}', jsonb_build_object('kind', 'list_id', 'id', $1::bigint), now(), now() + interval '1 hour', 'scheduled', 'staff:1', 'staff:1')`, id)
	b.get(at).is(200).has("Nobody can be added now", ">Spring</a>", fmt.Sprintf(`href="/campaigns/%d"`, g.number(`select max(id) from campaigns`))).hasNot("Add ids from a file")
	b.get(at + "/file").to(at)
	b.upload(at+"/file", "more.csv", "8\n").to(at)
	b.get(at).is(200).has("Nobody can be added until its audience is read.", "3 users")
}

// A form with a file that is sent twice, as by a double click, is one request;
// sent again with another file it is another.
func TestListFormsSentTwice(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Marketer)
	key := b.get("/segments/lists/new").is(200).field("request_key")
	b.upload("/segments/lists/new", "ids.csv", "id\n1", "request_key", key, "name", "").is(422).has(`name="request_key" value="` + key + `"`)
	var answers [2]answer
	var both sync.WaitGroup
	for i := range answers {
		both.Go(func() {
			answers[i] = b.upload("/segments/lists/new", "ids.csv", "id\n5\n6\n", "request_key", key, "name", "Fair")
		})
	}
	both.Wait()
	answers[1].to(answers[0].is(303).header.Get("Location"))
	if lists, jobs := g.number(`select count(*) from segments`), g.number(`select count(*) from jobs`); lists != 1 || jobs != 1 {
		t.Errorf("%d lists and %d jobs, want one of each", lists, jobs)
	}
	at := fmt.Sprintf("/segments/%d/file", g.number(`select id from segments`))
	key = b.get(at).is(200).field("request_key")
	b.upload(at, "", "", "request_key", key).is(422).has(`name="request_key" value="` + key + `"`)
	added := b.upload(at, "more.csv", "id\n7\n", "request_key", key).is(303).header.Get("Location")
	b.upload(at, "more.csv", "id\n7\n", "request_key", key).to(added)
	if other := b.upload(at, "other.csv", "id\n8\n", "request_key", key).is(303).header.Get("Location"); other == added {
		t.Error("another file from the same form is not read")
	}
	if jobs := g.number(`select count(*) from jobs`); jobs != 3 {
		t.Errorf("%d jobs for three files", jobs)
	}
}

// A rule is built in a real browser, where buttons change the tree in place.
func TestSegmentInTheBrowser(t *testing.T) {
	g := newRig(t)
	g.exec(`insert into users (id, attributes) values (1, '{"tier": "gold"}'), (2, '{}')`)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	b.open(g.server.URL + "/segments/new")
	b.fill("#f-name", "Gold")
	b.fill("[id='f-r.0.name']", "tier")
	b.fill("[id='f-r.0.value']", "gold")
	b.press("#segment", "Estimate")
	b.sees("#segment", "1 user")
	b.press("#segment", "Group")
	b.sees("#segment", "At least one of these holds")
	b.accessible("a rule with a group")
	evaluate[chromedp.Void](b, `document.querySelector("[aria-label='Remove group']").click()`)
	for deadline := time.Now().Add(10 * time.Second); evaluate[bool](b, `!!document.querySelector("[id='f-r.1.match']")`); {
		if time.Now().After(deadline) {
			t.Fatal("the group stays")
		}
	}
	b.press("#segment", "Save")
	b.sees("main", "The segment is saved.", "“tier” is gold", "1 user")
	b.accessible("a segment")
}

func TestEditUser(t *testing.T) {
	g := newRig(t)
	g.exec(`insert into users (id, name, email, opt_outs, push) values (7, 'Ann', 'ann@example.com', 2, '[{"endpoint":"https://p.example.com/1"}]')`)
	b := g.as(staff.Marketer)
	b.get("/users/7").is(200).has("/users/7/edit", "/users/7/erase")
	b.get("/users/7/edit").is(200).has(`value="ann@example.com"`, "Quiet from")
	form := url.Values{"name": {"Ann"}, "email": {"ann@"}, "phone": {""}, "locale": {"zh-CN"}, "timezone": {""}, "quiet_from": {"22:00"}, "quiet_to": {"08:00"}, "off": {"sms", "nonsense"}}
	b.post("/users/7/edit", form).is(422).has(`value="ann@"`)
	form.Set("email", "ann@example.com")
	b.post("/users/7/edit", form).to("/users/7")
	if n := g.number(`select count(*) from users where id = 7 and locale = 'zh-CN' and quiet_from = 1320 and opt_outs = 4 and email = 'ann@example.com' and push <> '[]'`); n != 1 {
		t.Fatal("the change is not stored, or more than it")
	}
	if n := g.number(`select count(*) from audit where action = 'user.edit' and object_id = '7' and after = '{"fields": ["locale", "opt_outs", "quiet_hours"]}'`); n != 1 {
		t.Fatal("the audit log does not name the fields")
	}
	if n := g.number(`select count(*) from audit where coalesce(after::text, '') like '%ann@%'`); n != 0 {
		t.Fatal("the audit log holds an address")
	}
	form.Set("quiet_to", "")
	b.post("/users/7/edit", form).is(422)
	form.Set("quiet_to", "22:00")
	b.post("/users/7/edit", form).is(422).has("must begin and end at different times")
	b.post("/users/8/edit", url.Values{"name": {"New"}}).to("/users/8")
	viewer := g.as(staff.Viewer)
	viewer.get("/users/7").is(200).hasNot("/users/7/edit")
	viewer.post("/users/7/edit", form).is(http.StatusForbidden)
	viewer.post("/users/7/erase", nil).is(http.StatusForbidden)
	// A person belongs to every shop.
	limited := g.as(staff.Marketer, 10)
	limited.get("/users/7").is(200).has("/users/7/edit").hasNot("/users/7/erase")
	limited.get("/users/7/erase").is(http.StatusForbidden)
	limited.post("/users/7/erase", nil).is(http.StatusForbidden)
	b.get("/users/7/erase").is(200).has("Forget user 7?")
	b.post("/users/7/erase", nil).to("/users/7")
	b.post("/users/7/erase", nil).to("/users/7")
	if n := g.number(`select count(*) from users where id = 7`); n != 0 {
		t.Fatal("the user is still known")
	}
}
