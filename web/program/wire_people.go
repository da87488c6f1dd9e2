package program

import (
	"github.com/go-chi/chi/v5"

	audiencedb "dropbell/adapters/postgres/audience"
	campaignsdb "dropbell/adapters/postgres/campaigns"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/sheet"
	"dropbell/app"
	"dropbell/domain/job"
	"dropbell/domain/segment"
	"dropbell/domain/user"
	"dropbell/web/links"
)

// mountLinks serves the pages behind links in messages. Without a secret
// there are no links, and every address below is missing.
func (p *program) mountLinks(r chi.Router) {
	pages := links.New(links.Deps{Users: p.users, Links: user.NewLinks(p.Config.LinkSecret), Channels: p.channels, Now: app.Clock, Log: p.Log})
	r.Mount(links.Prefix, pages)
	r.Mount(links.TrackedPrefix, links.NewTracked(pages, p.campaignLinks(), campaignsdb.NewCampaigns(p.DB, audiencedb.NewSegments(p.DB))))
}

func (p *program) segments() *segment.Service {
	return &segment.Service{Store: audiencedb.NewSegments(p.DB), Jobs: &job.Service{Store: workdb.NewJobs(p.DB)}, Tables: p.tables()}
}

func (p *program) tables() job.Tables {
	return sheet.Tables{Open: workdb.NewUploads(p.DB).OpenUpload, Turns: p.workbooks}
}
