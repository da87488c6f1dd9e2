package program

import (
	"strings"

	audiencedb "dropbell/adapters/postgres/audience"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/sheet"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/job"
	"dropbell/domain/segment"
	"dropbell/domain/user"
)

// optOutURL returns where a user can turn a channel off, as web serves it; nil
// without a secret to sign the links with.
func (p *program) optOutURL() func(user.ID, delivery.Channel) string {
	links := user.NewLinks(p.Config.LinkSecret)
	if !links.Enabled() {
		return nil
	}
	base := strings.TrimSuffix(p.Config.PublicURL, "/") + "/u/"
	return func(id user.ID, c delivery.Channel) string { return base + links.Token(id, uint8(c)) }
}

// tables reads uploaded files, one workbook at a time.
func (p *program) tables(l sheet.Limits) sheet.Tables {
	return sheet.Tables{Open: workdb.NewUploads(p.DB).OpenUpload, Limits: l, Turns: p.workbooks}
}

// peopleRunners work off what begins with uploaded lists of users, and counts.
func (p *program) peopleRunners(to map[string]job.Runner) map[string]job.Runner {
	segments, tables := audiencedb.NewSegments(p.DB), p.tables(sheet.Limits{})
	to[segment.CountJob] = &segment.Counter{Store: segments, Now: app.Clock}
	to[segment.ListJob] = &segment.Filler{Store: segments, Tables: tables, Now: app.Clock}
	importer := &user.Importer{Store: audiencedb.NewUsers(p.DB), Tables: tables, Now: app.Clock}
	to[user.CheckJob], to[user.ImportJob] = importer, importer
	return to
}
