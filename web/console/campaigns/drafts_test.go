package campaigns_test

import (
	"net/http"
	"net/url"
	"testing"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// A draft of a campaign is deleted and restored, including its users named one by one. The request
// for its approval ends.
func TestDeletedCampaignComesBack(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	b := g.As(staff.Marketer)
	b.Post("/campaigns", consoletest.CampaignForm("audience", "user_ids", "audience_value", "1001 1002")).Is(http.StatusSeeOther)
	g.Exec(`update campaigns set approval_asked_at = now()`)
	const before = `select md5((to_jsonb(c) - array['version', 'updated_at', 'request_key', 'approval_asked_at'])::text) from campaigns c`
	words := func() (text string) {
		t.Helper()
		g.Must(g.SQL.QueryRow(t.Context(), before).Scan(&text))
		return text
	}
	was := words()
	b.Get("/campaigns/1").Is(200).Has("Delete draft")
	q := b.Get("/campaigns/1/delete").Is(200).Has("Keep it", "Delete draft")
	b.Post("/campaigns/1/delete", url.Values{"version": {q.Field("version")}}).To("/campaigns")
	b.Get("/campaigns").Is(200).Has("is deleted", "/campaigns/1/restore")
	b.Get("/campaigns/1").Is(http.StatusGone).Has("Restore draft")
	g.As(staff.Viewer).Get("/campaigns/1").Is(404)
	b.Post("/campaigns/1/restore", nil).To("/campaigns/1")
	b.Get("/campaigns/1").Is(200).Has("Undone:")
	if now := words(); now != was || g.Number(`select count(*) from campaigns where approval_asked_at is not null`) != 0 {
		t.Errorf("the campaign came back as another one")
	}
	b.Post("/campaigns/1/restore", nil).To("/campaigns/1")
	g.Exec(`insert into batches (kind, owner_id, channel, from_user, to_user, due_at, worthless_after, due, due_count) values ('test', 1, 0, 1, 1, now(), now(), '\x00', 1)`)
	version := url.Values{"version": {b.Get("/campaigns/1/delete").Field("version")}}
	b.Post("/campaigns/1/delete", version).Is(http.StatusConflict).Has("on its way")
	g.Exec(`update batches set state = 'done'`)
	g.Exec(`update campaigns set state = 'running', started_at = now(), published_at = now()`)
	b.Post("/campaigns/1/delete", version).Is(http.StatusConflict)
	b.Post("/campaigns/1/pause", nil).To("/campaigns/1")
	undo := b.Get("/campaigns/1").Is(200).Has("is paused", "Undo").Form("/campaigns/1/undo")
	b.Post("/campaigns/1/undo", undo).To("/campaigns/1")
	b.Get("/campaigns/1").Is(200).Has("Undone:")
	b.Post("/campaigns/1/undo", undo).To("/campaigns/1")
	b.Get("/campaigns/1").Is(200).Has("undone before")
	b.Post("/campaigns/1/pause", nil).To("/campaigns/1")
	b.Post("/campaigns/1/undo", undo).To("/campaigns/1")
	b.Get("/campaigns/1").Is(200).Has("Too late to undo")
}
