package program

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/musttest"
)

// TestAnnouncementsGoOut sends the notice of a cancelled drop through a whole worker: once
// through its event alone, and once through the sweep alone, as if Redis had lost the event.
func TestAnnouncementsGoOut(t *testing.T) {
	for name, spoil := range map[string]string{
		"by the event": `update announcements set created_at = created_at + interval '1 hour'`, // too young for the sweep
		"by the sweep": `delete from outbox where topic = '` + event.AnnouncementCreated + `'`,
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "WORKER_HTTP_ADDR": "127.0.0.1:0"}
			notices, tpl := calledOff(t, env["DATABASE_URL"])
			conn, err := pgx.Connect(t.Context(), env["DATABASE_URL"])
			musttest.OK(t, err)
			defer conn.Close(context.WithoutCancel(t.Context()))
			if tag, err := conn.Exec(t.Context(), spoil); err != nil || tag.RowsAffected() != 1 {
				t.Fatalf("%v %v", tag, err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- run(ctx, func(name string) string { return env[name] }, io.Discard) }()
			awaitNotice(t, notices, tpl)
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// calledOff returns a cancelled drop with three reservations and a waiting notice.
func calledOff(t *testing.T, url string) (*reminder.Announcements, int64) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		musttest.OK(t, err)
	}
	db, err := postgres.Open(t.Context(), url, postgres.Options{AppName: "test"})
	must(err)
	t.Cleanup(db.Close)
	service := &template.Service{Store: dropsdb.NewTemplates(db), Now: app.Clock}
	opens := app.Clock().Add(2 * time.Hour).Truncate(time.Second)
	tpl, err := service.Create(t.Context(), staff.System(), template.Spec{ShopNumber: 10, Name: "Half price", Kind: template.AmountOff,
		AmountOff: 1000, Currency: "CNY", Target: template.WholeShop, Stock: 100, PerUserLimit: 1, OpensAt: opens, ClosesAt: opens.Add(time.Hour),
		ValidHours: 48, Obtain: template.ByClaim, ClaimMode: template.Durable}, "")
	must(err)
	_, err = service.Do(t.Context(), staff.System(), tpl.ID, 0, template.Publishing, "")
	must(err)
	reservations := dropsdb.NewReservations(db, postgres.Grouping{})
	defer reservations.Close()
	for _, id := range []user.ID{1001, 1002, 1003} {
		_, err := reservations.Reserve(t.Context(), reminder.Change{TemplateID: tpl.ID, UserID: id,
			Bits: reminder.BitmapOf(reminder.Reminder{Channel: delivery.App, Slot: 1})})
		must(err)
	}
	_, err = service.Do(t.Context(), staff.System(), tpl.ID, 0, template.Cancelling, "")
	must(err)
	notices := &reminder.Announcements{Store: dropsdb.NewAnnouncements(db), Now: app.Clock}
	_, err = notices.Send(t.Context(), staff.System(), tpl.ID, reminder.Order{Kind: delivery.KindCancelled})
	must(err)
	return notices, tpl.ID
}

func awaitNotice(t *testing.T, notices *reminder.Announcements, tpl int64) {
	t.Helper()
	var last []reminder.AnnouncementStatus
	for end := time.Now().Add(localstack.Patience(t)); time.Now().Before(end); {
		var err error
		if last, err = notices.List(t.Context(), staff.System(), tpl); err != nil {
			t.Fatal(err)
		}
		if last[0].State == reminder.AnnouncementFinished {
			if last[0].Channels[delivery.App] != (delivery.Counts{Reserved: 3, Sent: 3}) {
				t.Errorf("%+v", last[0])
			}
			return
		}
		pause := time.NewTimer(50 * time.Millisecond)
		<-pause.C
	}
	t.Fatalf("the notice did not go out: %+v", last)
}
