package audience_test

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
	"dropbell/web/console/consoletest"
)

// The tree is built by form buttons, saved, read, estimated, counted, copied and deleted.
func TestSegmentPages(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into users (id, locale, attributes) values (1, 'zh-CN', '{"tier": "gold"}'), (2, 'en', '{"tier": "gold"}'), (3, 'en', '{}')`)
	b := g.As(staff.Marketer)
	b.Get("/segments").Is(200).Has("No segments yet")
	b.Get("/segments/new").Is(200).Has(`name="r.match"`, `name="r.0.field"`)
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
	b.Post("/segments/new", with("do", "estimate")).Is(200).Has("2 customers", `value="gold"`)
	b.Post("/segments/new", with("do", "condition:r")).Is(200).Has(`name="r.1.field"`, `value="Gold"`)
	b.Post("/segments/new", with("do", "group:r")).Is(200).Has(`name="r.1.match"`, `name="r.1.0.field"`)
	b.Post("/segments/new", with("do", "remove:r.0")).Is(200).HasNot(`name="r.0.field"`)
	b.Post("/segments/new", with("do", "remove:r.9.x")).Is(200).Has(`name="r.0.field"`)
	// Another field brings its own operators and drops what no longer fits.
	b.Post("/segments/new", with("r.0.field", "contact", "do", "change")).Is(200).Has("is not known:").HasNot(`name="r.0.name"`)
	b.Post("/segments/new", with("r.0.field", "contact", "r.0.op", "has", "r.0.kind", "contact", "r.0.value", "email", "do", "change")).Is(200).Has(`name="r.0.kind" value="contact"`, `value="email" selected`)
	b.Post("/segments/new", with("r.0.field", "created", "r.0.op", "has", "r.0.kind", "contact", "r.0.value", "email", "do", "change")).Is(200).Has(`name="r.0.kind" value="days"`).HasNot(`value="email"`)
	b.Post("/segments/new", with("r.0.field", "locale", "r.0.op", "has", "r.0.kind", "contact", "r.0.value", "email", "do", "change")).Is(200).HasNot(`value="email"`)
	b.Post("/segments/new", with("r.0.op", "one_of", "r.0.kind", "text", "do", "change")).Is(200).Has(`value="gold"`)
	// An estimate that cannot be told says why, as a save does.
	for _, why := range [][]string{{"created", "within_days", "email", "must be a number of days from 1 to 3650"}, {"locale", "one_of", "zz-@@", "must be a language tag"}, {"attribute", "is", "", "Enter a value"}} {
		a := b.Post("/segments/new", with("r.0.field", why[0], "r.0.op", why[1], "r.0.value", why[2], "do", "estimate")).Is(200).Has(why[3])
		if bar := consoletest.Between(a.Body, `id="estimate"`, "</div>"); !strings.Contains(bar, "No estimate") || !strings.Contains(bar, why[3][:11]) {
			t.Errorf("%v: where the estimate would be stands %q", why, bar)
		}
	}
	b.Post("/segments/new", with("name", "", "r.0.name", "", "do", "save")).Is(422).Has("Enter a name", "letters, digits, dots")
	deep := with("do", "save", "r.1.match", "any", "r.1.0.field", "locale", "r.1.0.op", "one_of", "r.1.0.value", "zh, fr")
	at := b.Post("/segments/new", deep).Is(303).Header.Get("Location")
	// A form that is sent twice makes one segment; its key stays while the tree grows.
	key := b.Get("/segments/new").Is(200).Field("request_key")
	once := with("do", "save", "name", "Once", "request_key", key)
	b.Post("/segments/new", with("do", "condition:r", "request_key", key)).Is(200).Has(`name="request_key" value="` + key + `"`)
	made := b.Post("/segments/new", once).Is(303).Header.Get("Location")
	b.Post("/segments/new", once).To(made)
	if n := g.Number(`select count(*) from segments where name = 'Once'`) + g.Number(`select count(*) from audit where action = 'segment.create'`); n != 3 {
		t.Errorf("%d segments and records, want one of each and a record of the other", n)
	}
	b.Get(at).Is(200).Has("All of these hold", "“tier” is gold", "Language is one of Chinese, French", at+"?estimate=1", "No campaign uses this segment").HasNot("1 customer")
	b.Get(at + "?estimate=1").Is(200).Has("1 customer").HasNot(`hx-trigger="load"`)
	b.Get(at + "/edit?estimate=1").Is(200).Has("1 customer")
	edit := b.Get(at+"/edit").Is(200).Has(`name="r.1.0.value" value="zh"`, `name="r.1.0.value" value="fr"`, `<option value="tier">`, at+"/edit?estimate=1").HasNot("1 customer")
	b.Post(at+"/edit", with("do", "save", "name", "Golden", "version", edit.Field("version"))).To(at)
	b.Post(at+"/edit", with("do", "save", "name", "Other", "version", edit.Field("version"))).Is(http.StatusConflict).Has("Another person changed this segment", "<strong>Golden</strong>", "“tier” is gold", `value="Other"`)
	b.Get(at+"?estimate=1").Is(200).Has("Golden", "2 customers")
	count := b.Post(at+"/count", nil).Is(303).Header.Get("Location")
	g.WorkPeople()
	b.Get(count).Is(200).Has("Done", at)
	b.Get("/segments?q=gold").Is(200).Has("Golden", "By rules")
	b.Get("/segments?after=x.y").Is(200).Has("Golden")
	b.Post(at+"/clone", nil).Is(303)
	b.Get("/segments").Is(200).Has("Copy of Golden")
	b.Get(at + "/delete").Is(200).Has("Delete “Golden”?")
	b.Post(at+"/delete", nil).To("/segments")
	b.Get(at).Is(404)
	viewer := g.As(staff.Viewer)
	viewer.Get("/segments").Is(200).HasNot("/segments/new")
	viewer.Post("/segments/new", deep).Is(http.StatusForbidden)
	for _, junk := range []url.Values{{}, {"r.match": {"x"}, "do": {"save"}, "name": {"x"}}, {"r.field": {"x"}, "do": {"save"}}, {"do": {"condition:q"}}, {"r.match": {"all"}, "r.0.field": {"shoe"}, "do": {"estimate"}}} {
		if a := b.Post("/segments/new", junk); a.Status >= 500 {
			t.Errorf("%v: %d", junk, a.Status)
		}
	}
}

// Attributes, languages, time zones and drops of a condition are chosen by their names; each chosen
// value can be removed.
func TestValuesOfConditionsAreChosen(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	g.Exec(`insert into users (id, attributes) values (1, '{"tier": "gold", "city": "Lyon"}'), (2, '{"tier": "gold"}'), (3, '{}')`)
	b := g.As(staff.Marketer)
	b.Get("/segments/new").Is(200).Has(`list="attributes"`, `<option value="city"></option><option value="tier"></option>`)
	form := url.Values{"name": {"French"}, "r.match": {"all"}, "r.0.field": {"locale"}, "r.0.op": {"one_of"}, "r.0.kind": {"languages"}, "r.0.value": {"fr"}, "do": {"estimate"},
		"r.1.field": {"reserved"}, "r.1.op": {"template"}, "r.1.kind": {"templates"}, "r.1.value": {d.Name},
		"r.2.field": {"timezone"}, "r.2.op": {"one_of"}, "r.2.kind": {"zones"}, "r.2.value": {"Europe/Paris"}}
	b.Post("/segments/new", form).Is(200).Has(`name="r.0.value" value="fr"`, "<span>French</span>", "Remove French", `<option value="de">German</option>`, fmt.Sprintf("<span>%s (#%d)</span>", d.Name, d.ID),
		`name="r.2.value" value="Europe/Paris"`, `<option value="Asia/Tokyo">`)
	form["r.0.value"] = []string{"fr", "de"}
	form.Set("do", "without:r.0:fr")
	b.Post("/segments/new", form).Is(200).Has("<span>German</span>").HasNot("<span>French</span>")
	form.Set("do", "save")
	at := b.Post("/segments/new", form).Is(http.StatusSeeOther).Header.Get("Location")
	b.Get(at).Is(200).Has("Language is one of French, German", fmt.Sprintf("%s (#%d)", d.Name, d.ID))
}

func TestListPages(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	b.Upload("/segments/lists/new", "ids.csv", "id\n1", "name", "").Is(422).Has("Enter a name")
	b.Upload("/segments/lists/new", "", "", "name", "Fair").Is(422).Has("choose a file", `value="Fair"`)
	made := b.Upload("/segments/lists/new", "ids.csv", "id\n5\n6\nx\n", "name", "Fair").Is(303).Header.Get("Location")
	b.Get(fmt.Sprintf("/segments/%d", g.Number(`select max(id) from segments`))).Is(200).Has("Waiting", made)
	g.WorkPeople()
	b.Get(made).Is(200).Has("Done", "Open the segment", "id: must be a positive whole number")
	chinese := g.Chinese()
	chinese.Get(made).Is(200).Has("id：必须是正整数")
	chinese.Get(made + "/errors.csv").Is(200).Has("id：必须是正整数")
	id := g.Number(`select max(id) from segments`)
	at := fmt.Sprintf("/segments/%d", id)
	b.Get(at).Is(200).Has("List from files", "2 customers", "Add ids from a file", "2 ids read", "Done", made)
	b.Get(at + "/file").Is(200).Has("Add to “Fair”")
	b.Upload(at+"/file", "more.csv", "6\n7\n").Is(303)
	g.WorkPeople()
	b.Get(at).Is(200).Has("3 customers")
	// A list whose file could not be read is not shown as complete.
	b.Upload(at+"/file", "broken.csv", "id\n7\n\""+strings.Repeat("x", 2<<20)+"\n").Is(303)
	g.WorkPeople()
	b.Get(at).Is(200).Has("3 customers", "Failed", "The file has too many rows, or a row that is too long.")
	b.Post(at+"/edit", url.Values{"name": {"The fair"}, "version": {"1"}, "do": {"save"}}).To(at)
	// A campaign that has not read its audience keeps the list as it is.
	g.Exec(`insert into campaigns (name, channel, content, audience, starts_at, ends_at, state, creator, created_by)
		values ('Spring', 1, '{}', jsonb_build_object('kind', 'list_id', 'id', $1::bigint), now(), now() + interval '1 hour', 'scheduled', 'staff:1', 'staff:1')`, id)
	b.Get(at).Is(200).Has("Customers cannot be added now", ">Spring</a>", fmt.Sprintf(`href="/campaigns/%d"`, g.Number(`select max(id) from campaigns`))).HasNot("Add ids from a file")
	b.Get(at + "/file").To(at)
	b.Upload(at+"/file", "more.csv", "8\n").To(at)
	b.Get(at).Is(200).Has("Customers can be added after its audience has been read.", "3 customers")
}

// A form with a file that is sent twice, as by a double click, is one request; sent again with
// another file, it is another request.
func TestListFormsSentTwice(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	key := b.Get("/segments/lists/new").Is(200).Field("request_key")
	b.Upload("/segments/lists/new", "ids.csv", "id\n1", "request_key", key, "name", "").Is(422).Has(`name="request_key" value="` + key + `"`)
	var answers [2]consoletest.Answer
	var both sync.WaitGroup
	for i := range answers {
		both.Go(func() {
			answers[i] = b.Upload("/segments/lists/new", "ids.csv", "id\n5\n6\n", "request_key", key, "name", "Fair")
		})
	}
	both.Wait()
	answers[1].To(answers[0].Is(303).Header.Get("Location"))
	if lists, jobs := g.Number(`select count(*) from segments`), g.Number(`select count(*) from jobs`); lists != 1 || jobs != 1 {
		t.Errorf("%d lists and %d jobs, want one of each", lists, jobs)
	}
	at := fmt.Sprintf("/segments/%d/file", g.Number(`select id from segments`))
	key = b.Get(at).Is(200).Field("request_key")
	b.Upload(at, "", "", "request_key", key).Is(422).Has(`name="request_key" value="` + key + `"`)
	added := b.Upload(at, "more.csv", "id\n7\n", "request_key", key).Is(303).Header.Get("Location")
	b.Upload(at, "more.csv", "id\n7\n", "request_key", key).To(added)
	if other := b.Upload(at, "other.csv", "id\n8\n", "request_key", key).Is(303).Header.Get("Location"); other == added {
		t.Error("another file from the same form is not read")
	}
	if jobs := g.Number(`select count(*) from jobs`); jobs != 3 {
		t.Errorf("%d jobs for three files", jobs)
	}
}

// A rule is built in a real browser, where buttons change the tree in place.
func TestSegmentInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into users (id, attributes) values (1, '{"tier": "gold"}'), (2, '{}')`)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Open(g.Server.URL + "/segments/new")
	b.Fill("#f-name", "Gold")
	b.Fill("[id='f-r.0.name']", "tier")
	b.Fill("[id='f-r.0.value']", "gold")
	b.Press("#segment", "Estimate")
	b.Sees("#segment", "1 customer")
	b.Press("#segment", "Group")
	b.Sees("#segment", "At least one of these holds")
	b.Accessible("a rule with a group")
	consoletest.Evaluate[chromedp.Void](b, `document.querySelector("[aria-label='Remove group']").click()`)
	consoletest.Within(t, "the end of the group", func() bool { return !consoletest.Evaluate[bool](b, `!!document.querySelector("[id='f-r.1.match']")`) })
	b.Press("#segment", "Save")
	b.Sees("main", "The segment is saved.", "“tier” is gold", "1 customer")
	b.Accessible("a segment")
}
