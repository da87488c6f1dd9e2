package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"dropbell/domain/staff"
)

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
	b.upload(at+"/file", "broken.csv", "id\n7\n\""+strings.Repeat("x", 2<<20)+"\n").is(303)
	g.workPeople()
	b.get(at).is(200).has("3 users", "failed", "The file has too many rows, or a row that is too long.")
	b.post(at+"/edit", url.Values{"name": {"The fair"}, "version": {"1"}, "do": {"save"}}).to(at)
	// A campaign that has not read its audience keeps the list as it is.
	g.exec(`insert into campaigns (name, channel, content, audience, starts_at, ends_at, state, creator, created_by)
		values ('Spring', 1, '{}', jsonb_build_object('kind', 'list_id', 'id', $1::bigint), now(), now() + interval '1 hour', 'scheduled', 'staff:1', 'staff:1')`, id)
	b.get(at).is(200).has("Nobody can be added now", ">Spring</a>", fmt.Sprintf(`href="/campaigns/%d"`, g.number(`select max(id) from campaigns`))).hasNot("Add ids from a file")
	b.get(at + "/file").to(at)
	b.upload(at+"/file", "more.csv", "8\n").to(at)
	b.get(at).is(200).has("Users can be added after its audience has been read.", "3 users")
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
