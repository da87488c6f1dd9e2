package search_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// On the page of a drop or a campaign the search offers the commands that the viewer may use there.
// Each command is also on the page itself, and leads to a confirmation.
func TestCommandsOfThePage(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	g.Exec(`update templates set name = 'Moon cakes'`)
	g.Exec(`insert into campaigns (name, shop_number, channel, content, audience, starts_at, ends_at, state, creator, created_by)
		values ('Moon letter', 10, 1, '{}', '{"kind": "everybody"}', now(), now() + interval '1 hour', 'draft', 'staff:1', 'staff:1')`)
	page := shell.TemplateURL(d.ID)
	b := g.As(staff.Marketer)
	from := func(b *consoletest.Browser, page, text string) consoletest.Answer {
		b.Header.Set("HX-Current-URL", g.Server.URL+page+"?tab=history")
		return b.Post("/search", url.Values{"q": {text}}).Is(http.StatusOK)
	}
	link := regexp.MustCompile(`href="(` + page + `/[a-z]+)"`)
	for _, c := range []struct {
		change string
		want   []string
	}{
		{``, []string{"/pause", "/move", "/cancel", "/stock", "/edit"}},
		{`update templates set state = 'paused'`, []string{"/resume", "/move", "/cancel"}},
		{`update templates set state = 'draft'`, []string{"/publish", "/delete", "/edit"}},
	} {
		if c.change != "" {
			g.Exec(c.change)
		}
		answer := from(b, page, "").Has("Actions", "Moon cakes")
		for _, want := range c.want {
			answer.Has(`"` + page + want + `"`)
		}
		offered := b.Get(page + "?tab=reminders").Is(200).Body
		for _, m := range link.FindAllStringSubmatch(answer.Body, -1) {
			if !strings.Contains(offered, `"`+m[1]+`"`) {
				t.Errorf("%s is offered by the search only", m[1])
			}
			b.Get(m[1]).Is(200)
		}
	}
	g.Exec(`update templates set state = 'published'`)
	from(b, page, "paus").Has(`"` + page + `/pause"`).HasNot(page + "/cancel")
	from(b, "/campaigns/1", "").Has(`"/campaigns/1/publish"`, `"/campaigns/1/edit"`, "Moon letter").HasNot(page + "/pause")
	from(g.As(staff.Viewer), page, "").HasNot("Actions", page+"/pause")
	from(g.As(staff.Marketer, 11), page, "").HasNot("Actions", page+"/pause")
	for _, elsewhere := range []string{"/templates", "/templates/new", "/users/1", "/templates/999", "/templates/-1", "//x/%zz"} {
		from(b, elsewhere, "").HasNot(page + "/pause")
	}
	if n := g.Number(`select count(*) from templates where state = 'published'`); n != 1 {
		t.Error("a search or a question has changed the drop")
	}
}

// A command and a name, in either order and language, find the command of that thing.
func TestCommandsByName(t *testing.T) {
	g, mine, theirs, _ := sameNames(t)
	g.Exec(`update templates set name = 'Sun' where shop_number = 11`)
	g.Exec(`update campaigns set state = 'running', started_at = now() where shop_number = 10`)
	b := g.As(staff.Admin)
	for _, text := range []string{"pause moon 10", "Moon 10 pause", "PAUSE  moon"} {
		searched(b, text).Has(`"` + mine + `/pause"`).HasNot(theirs + "/pause")
	}
	searched(b, "pause moon letter").Has(`"/campaigns/1/pause"`)
	searched(b, "sun").Has(`"`+theirs+`/pause"`, `"`+theirs+`/move"`) // the only one of this name
	searched(b, "moon").HasNot("/pause")
	searched(b, "pausemoon").HasNot("/pause")
	chinese := g.As(staff.Marketer, 10)
	chinese.Post("/preferences", url.Values{"locale": {"zh-CN"}, "return": {"/"}})
	searched(chinese, "暂停moon 10").Has(`"`+mine+`/pause"`, "操作")
	searched(chinese, "pause sun").HasNot(theirs + "/pause")
	searched(g.As(staff.Viewer), "pause moon 10").HasNot("/pause")
	searched(b, fmt.Sprintf("pause #%s", strings.TrimPrefix(mine, "/templates/"))).Has(`"` + mine + `/pause"`)
}
