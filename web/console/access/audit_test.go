package access_test

import (
	"fmt"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

func TestAuditFilters(t *testing.T) {
	g := consoletest.New(t)
	m := g.Hire(staff.Marketer)
	g.Exec(`update staff set name = 'Zoë Okafor' where id = $1`, m.ID)
	d := g.Published(10, 2*time.Hour)
	g.Published(11, 2*time.Hour)
	b := g.Browser()
	b.SignIn(m.Email)
	b.Post(shell.TemplateURL(d.ID)+"/pause", map[string][]string{"reason": {"Heavy 100% rain"}}).To(shell.TemplateURL(d.ID))
	b.Get("/audit").Is(200).Has("Heavy 100% rain", "template.publish", "staff.create", "/audit.csv")
	b.Get("/audit?actor=okafor").Is(200).Has("Heavy 100% rain").HasNot("<code>template.publish</code>")
	b.Get("/audit?actor=" + m.Email[:12]).Is(200).Has("Heavy 100% rain")
	b.Get("/audit?actor=nobody").Is(200).Has("Clear filters")
	b.Get("/audit?q=100%25+RAIN").Is(200).Has("Heavy 100% rain").HasNot("<code>template.publish</code>")
	b.Get("/audit?q=100_").Is(200).HasNot("Heavy 100% rain")
	b.Get("/audit?action=template.pause").Is(200).Has("Heavy 100% rain").HasNot("<code>template.publish</code>")
	b.Get("/audit?shop=11").Is(200).Has("published").HasNot("Heavy 100% rain")
	b.Get("/audit?kind=template&id="+fmt.Sprint(d.ID)).Is(200).Has("Heavy 100% rain", ">Paused<", ">Published<")
	g.As(staff.Viewer, 11).Get("/audit").Is(200).HasNot("Heavy 100% rain")
}
