package program

import (
	"dropbell/adapters/postgres"
	"dropbell/domain/job"
	"dropbell/domain/template"
	"dropbell/web/console"
)

// wireLists gives the console what it changes many rows at once with.
func (p *program) wireLists(d *console.Deps) {
	d.Bulks = &template.Bulks{Templates: p.templates, Jobs: &job.Service{Store: postgres.NewJobs(p.DB)}}
}
