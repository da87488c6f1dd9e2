package program

import (
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/job"
	"dropbell/domain/template"
	"dropbell/web/console"
)

// wireLists gives the console what it changes many rows at once with.
func (p *program) wireLists(d *console.Deps) {
	d.Bulks = &template.Bulks{Templates: p.templates, Jobs: &job.Service{Store: workdb.NewJobs(p.DB)}}
}
