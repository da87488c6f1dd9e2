package console

import (
	"fmt"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

func TestAuditFilters(t *testing.T) {
	g := newRig(t)
	m := g.hire(staff.Marketer)
	g.exec(`update staff set name = 'Zoë Okafor' where id = $1`, m.ID)
	d := g.published(10, 2*time.Hour)
	g.published(11, 2*time.Hour)
	b := g.browser()
	b.signIn(m.Email)
	b.post(shell.TemplateURL(d.ID)+"/pause", map[string][]string{"reason": {"Heavy 100% rain"}}).to(shell.TemplateURL(d.ID))
	b.get("/audit").is(200).has("Heavy 100% rain", "template.publish", "staff.create", "/audit.csv")
	b.get("/audit?actor=okafor").is(200).has("Heavy 100% rain").hasNot("<code>template.publish</code>")
	b.get("/audit?actor=" + m.Email[:12]).is(200).has("Heavy 100% rain")
	b.get("/audit?actor=nobody").is(200).has("Clear filters")
	b.get("/audit?q=100%25+RAIN").is(200).has("Heavy 100% rain").hasNot("<code>template.publish</code>")
	b.get("/audit?q=100_").is(200).hasNot("Heavy 100% rain")
	b.get("/audit?action=template.pause").is(200).has("Heavy 100% rain").hasNot("<code>template.publish</code>")
	b.get("/audit?shop=11").is(200).has("published").hasNot("Heavy 100% rain")
	b.get("/audit?kind=template&id="+fmt.Sprint(d.ID)).is(200).has("Heavy 100% rain", ">Paused<", ">Published<")
	g.as(staff.Viewer, 11).get("/audit").is(200).hasNot("Heavy 100% rain")
}
