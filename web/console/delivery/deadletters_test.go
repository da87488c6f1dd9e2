package delivery_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

func TestDeadLettersAreShownToEverybody(t *testing.T) {
	g := consoletest.New(t)
	viewer := g.As(staff.Viewer)
	viewer.Get("/dead-letters").Is(200).Has("No failed messages", "Messages that a provider refuses permanently").HasNot("/dead-letters/replay")
	d := g.Published(10, 2*time.Hour)
	for id := user.ID(1001); id <= 1003; id++ {
		g.Book(d, id, delivery.App, 5)
	}
	g.Fire(d, 1, consoletest.Fails(map[user.ID]delivery.Result{1001: {Detail: "HTTP 503"}, 1002: {Status: delivery.Permanent}}))
	viewer.Get("/dead-letters").Is(200).Has("2 failed messages", "in 2 groups", "HTTP 503", "no answer recorded").HasNot("/dead-letters/replay", "/dead-letters/discard")
	for query, want := range map[string][]string{"channel=app": {"2 failed messages"}, "template=1": {"2 failed messages"}, "user=1001": {"1 failed message", "HTTP 503"},
		"channel=email": {"No matches"}, "user=1003": {"No matches"}, "template=99": {"No matches"}} {
		viewer.Get("/dead-letters?" + query).Is(200).Has(want...)
	}
	operator := g.As(staff.Operator)
	for query, told := range map[string]string{"user=ada": "The filter cannot be read", "template=-1": "The filter cannot be read", "campaign=x": "The filter cannot be read",
		"channel=pigeon": "There is no such channel", "user=99999999999999999999": "The filter cannot be read"} {
		viewer.Get("/dead-letters?"+query).Is(200).Has(told, `aria-invalid="true"`).HasNot("HTTP 503")
		viewer.Get("/dead-letters/list?" + query).To("/dead-letters?" + query)
		operator.Get("/dead-letters/replay?" + query).To("/dead-letters?" + query)
		operator.Get("/dead-letters/discard?" + query).To("/dead-letters?" + query)
	}
	viewer.Get("/dead-letters.csv?channel=pigeon&user=ada").Is(http.StatusUnprocessableEntity).
		Has("Some input is not valid", "Channel: choose one.", "nothing has this name; choose a name from the list, or type a number.").HasNot("has changed in the meantime")
	// A kind of error without any words is a kind of its own.
	viewer.Get("/dead-letters/list?channel=app&fingerprint=").Is(200).Has("/templates/1/users/1002").HasNot("/users/1001")
	viewer.Htmx().Get("/dead-letters?user=1001").Is(200).Has("HTTP 503").HasNot("<html")
}

// Dead letters of a campaign are listed under the campaign's name with a link, whatever template
// the campaign is about. Their users are linked, too.
func TestDeadLettersOfCampaigns(t *testing.T) {
	g := consoletest.DeadLettered(t)
	g.Exec(`insert into users (id) values (5), (6)`)
	g.Exec(`insert into campaigns (id, shop_number, name, channel, content, audience, starts_at, ends_at, state, creator, created_by) overriding system value
		select n, 10, 'Spring ' || n, 0, '{}', '{"kind": "all"}', now(), now() + interval '1 hour', 'finished', 'staff:1', 'staff:1' from generate_series(71, 72) n`)
	g.Exec(`insert into batches (id, kind, owner_id, template_id, channel, from_user, to_user, state, due_at, worthless_after, due, due_count, dead_count)
		overriding system value select 900 + n, 'campaign', 70 + n, n - 1, 0, 1, 1000, 'done', now(), now() + interval '1 hour', ''::bytea, 1, 1 from generate_series(1, 2) n`)
	g.Exec(`insert into exceptions (batch_id, user_id, channel, outcome, reason, detail, fingerprint, attempts)
		select 900 + n, 4 + n, 0, 'dead', 'attempts_used_up', 'HTTP 404', 'http #', 8 from generate_series(1, 2) n`)
	b := g.As(staff.Operator, 10)
	b.Get("/dead-letters/list").Is(200).Has(`href="/users/5"`, `href="/users/6"`, `href="/campaigns/71"`, "Spring 71", "Spring 72", `href="/templates/1/users/1001"`).
		HasNot("/templates/0", "/templates/1/users/6", "#0")
	b.Get("/users/5").Is(200)
	b.Get("/dead-letters?campaign=71").Is(200).Has("1 failed message", `name="campaign"`, `value="71"`)
	b.Get("/dead-letters/list?campaign=72").Is(200).Has("Spring 72", "campaign #72").HasNot("Spring 71", "/users/5")
	b.Get("/dead-letters?campaign=x").Is(200).Has("The filter cannot be read")
	b.Get("/dead-letters.csv?campaign=72").Is(200).Has("campaign_name", "campaign,72,Spring 72").HasNot("Spring 71")
	b.Get("/deliveries?kind=campaign").Is(200).Has("Spring 71", "Spring 72")
	b.Get("/dead-letters/replay?campaign=71").Is(200).Has("1 still in time", `name="campaign" value="71"`)
	b.Post("/dead-letters/discard", url.Values{"campaign": {"71"}}).To("/dead-letters?campaign=71")
	g.Must(g.DeadLetters.Step(t.Context()))
	b.Get("/dead-letters").Is(200).Has("3 failed messages", "campaign #71")
}

var links = regexp.MustCompile(`href="(/dead-letters/list[^"]*)"`)

func TestGroupsLeadToTheirLetters(t *testing.T) {
	g := consoletest.DeadLettered(t)
	viewer := g.As(staff.Viewer)
	seen := ""
	for _, m := range links.FindAllStringSubmatch(viewer.Get("/dead-letters").Is(200).Body, -1) {
		seen += viewer.Get(html.UnescapeString(m[1])).Is(200).Body
	}
	for _, id := range []string{"1001", "1002"} {
		if strings.Count(seen, `href="/templates/1/users/`+id+`"`) != 1 {
			t.Errorf("user %s is not found once by following the groups", id)
		}
	}
}

func TestManyDeadLettersArePaged(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	for id := user.ID(1); id <= shell.PageSize+2; id++ {
		g.Book(d, id, delivery.App, 5)
	}
	g.Fire(d, 1, func(delivery.Message) delivery.Result { return delivery.Result{Detail: "down"} })
	viewer := g.As(staff.Viewer)
	first := viewer.Get("/dead-letters/list?template=1").Is(200).Has("Next page").HasNot("First page")
	next := html.UnescapeString(consoletest.Between(consoletest.Between(first.Body, `<nav class="pager"`, `</nav>`), `href="`, `"`))
	second := viewer.Get(next).Is(200).Has("First page").HasNot("Next page")
	if a, b := strings.Count(first.Body, `class="row-link"`), strings.Count(second.Body, `class="row-link"`); a != shell.PageSize || b != 2 {
		t.Errorf("%d letters on the first page and %d on the second", a, b)
	}
	viewer.Get("/dead-letters/list?after=x_y").Is(200).Has("Next page")
}

func TestReplay(t *testing.T) {
	g := consoletest.DeadLettered(t)
	operator := g.As(staff.Operator)
	operator.Get("/dead-letters/replay?template=1").Is(200).Has("2 still in time, 0 would be too late, 0 already sent by another attempt", "Replay 2 messages", `name="template" value="1"`)
	operator.Get("/dead-letters/replay?template=99").Is(200).Has("A replay would reach no customer").HasNot("Replay 0")
	operator.Post("/dead-letters/replay", url.Values{"rate_per_second": {"plenty"}, "reason": {"it is back"}}).Is(422).Has("must be a whole number", `value="plenty"`, `value="it is back"`)
	operator.Post("/dead-letters/replay", url.Values{"rate_per_second": {"-1"}}).Is(422).Has("must be between 0 and 1,000,000")
	operator.Post("/dead-letters/replay", url.Values{"user": {"ada"}}).To("/dead-letters?user=ada")
	operator.Post("/dead-letters/discard", url.Values{"user": {"ada"}}).To("/dead-letters?user=ada")
	operator.Get("/dead-letters").Is(200).HasNot("Replays and discards")
	operator.Post("/dead-letters/replay", url.Values{"template": {"1"}, "rate_per_second": {"5"}, "reason": {"it is back"}}).To("/dead-letters?template=1")
	operator.Get("/dead-letters").Is(200).Has("The replay has begun.", "0 of 2", "The operator", "/dead-letters/jobs/1/cancel", `data-live="/dead-letters/jobs"`, "Live")
	operator.Get("/audit?kind=dead_letters").Is(200).Has("it is back")
	part := g.As(staff.Viewer).Htmx()
	if a := part.Get("/dead-letters/jobs").Is(200).Has("0 of 2", "Running").HasNot("<html", "/cancel"); a.Header.Get("HX-Trigger") != "" {
		t.Error("the page is told to load anew while the job runs")
	}
	g.Must(g.DeadLetters.Step(t.Context()))
	operator.Get("/dead-letters").Is(200).Has("2 of 2: 2 tried again", "Finished")
	if a := part.Get("/dead-letters/jobs").Is(200); a.Header.Get("HX-Trigger") != "dropbell:reload" {
		t.Error("the page is not told that the job has ended")
	}
	g.Deliver(consoletest.Takes)
	operator.Get("/dead-letters").Is(200).Has("No failed messages").HasNot("data-live")
	operator.Get("/templates/1/balance").Is(200).Has("No recipient is missing", "3 reserved = 3 sent")
	operator.Get("/dead-letters/jobs").To("/dead-letters")
}

func TestDryRunTellsWhoIsTooLateOrWasReached(t *testing.T) {
	g := consoletest.DeadLettered(t)
	g.Exec(`update batches set worthless_after = clock_timestamp()`)
	g.As(staff.Operator).Get("/dead-letters/replay").Is(200).Has("0 still in time, 2 would be too late", "You can discard these failed messages").HasNot("Replay 2")
}

func TestDiscard(t *testing.T) {
	g := consoletest.DeadLettered(t)
	operator := g.As(staff.Operator).Htmx()
	operator.Get("/dead-letters/discard?user=1001").Is(200).Has("1 message is discarded", "This cannot be undone.", `name="user" value="1001"`, "Reason").HasNot("<html")
	a := operator.Post("/dead-letters/discard", url.Values{"user": {"1001"}}).Is(200)
	if a.Header.Get("HX-Redirect") != "/dead-letters?user=1001" {
		t.Errorf("leads to %q", a.Header.Get("HX-Redirect"))
	}
	g.Must(g.DeadLetters.Step(t.Context()))
	operator.Get("/dead-letters").Is(200).Has("1 failed message").HasNot("HTTP 503")
	operator.Get("/templates/1/users/1001").Is(200).Has("was discarded", "Discarded by an operator.")
	operator.Get("/templates/1/balance").Is(200).Has("3 reserved = 1 sent + 0 skipped + 0 expired + 2 failed")
}

// The dry run uses the typed rate, read by the usual rules for numbers. It says how long the replay
// takes, and how many recipients are too late only because of the rate.
func TestDryRunAtARate(t *testing.T) {
	g := consoletest.DeadLettered(t)
	// Ten more dead letters, in a second batch.
	g.Exec(`with b as (insert into batches (kind, owner_id, template_id, channel, from_user, to_user, due, due_count, dead_count, state, due_at, worthless_after)
			select kind, owner_id, template_id, channel, 2001, 2010, due, 10, 10, 'done', due_at, now() + interval '1 hour' from batches order by id limit 1 returning id, channel)
		insert into exceptions (batch_id, user_id, channel, outcome, reason) select b.id, i, b.channel, 'dead', 'attempts_used_up' from b, generate_series(2001, 2010) i`)
	g.Exec(`update batches set worthless_after = clock_timestamp() + interval '1 hour'`)
	operator := g.As(staff.Operator)
	operator.Get("/dead-letters/replay").Is(200).Has("12 still in time", "as fast as the channel allows.", `hx-get="/dead-letters/replay?part=run"`).HasNot("per second this takes")
	for _, rate := range []string{"2", " 2 ", "２", "%E3%80%802"} {
		operator.Get("/dead-letters/replay?rate_per_second="+strings.ReplaceAll(rate, " ", "+")).Is(200).Has("12 still in time", "At 2 per second this takes about 6 s.").HasNot("higher rate")
	}
	operator.Get("/dead-letters/replay?rate_per_second=plenty").Is(200).Has("must be a whole number", `aria-invalid="true"`, "Enter a valid rate").HasNot("still in time")
	operator.Get("/dead-letters/replay?rate_per_second=-1").Is(200).Has("must be between 0 and 1,000,000")
	part := g.As(staff.Operator).Htmx()
	part.Get("/dead-letters/replay?part=run&rate_per_second=３").Is(200).Has("At 3 per second this takes about 4 s.", `<hx-partial hx-target="#replay-submit"`, "Replay 12 messages").HasNot("<form", "<html")
	part.Get("/dead-letters/replay?part=run&rate_per_second=1,5").Is(200).Has("At most: ").HasNot("still in time", "Replay 12")
	part.Get("/dead-letters/replay?part=run&user=2001&rate_per_second=1").Is(200).Has("1 still in time", "Replay 1 message")
	// The time is too short for the rate: eleven seconds or less, for twelve messages.
	g.Exec(`update batches set worthless_after = clock_timestamp() + interval '11 seconds'`)
	page := part.Get("/dead-letters/replay?part=run&rate_per_second=1").Is(200).Has("of the late messages would be in time at a higher rate.")
	page.HasNot("12 still in time")
	part.Get("/dead-letters/replay?part=run&rate_per_second=1000").Is(200).Has("12 still in time").HasNot("at a higher rate.")
}

// A double click is one replay, or one discard.
func TestDeadLetterFormsSentTwice(t *testing.T) {
	g := consoletest.DeadLettered(t)
	operator := g.As(staff.Operator)
	for i, path := range []string{"/dead-letters/replay", "/dead-letters/discard"} {
		form := url.Values{"user": {"1001"}, "request_key": {operator.Get(path + "?user=1001").Is(200).Field("request_key")}}
		if i == 0 { // a refused request keeps its key
			form.Set("rate_per_second", "-1")
			operator.Post(path, form).Is(422).Has(form.Get("request_key"))
			form.Del("rate_per_second")
		}
		for range 2 {
			operator.Post(path, form).To("/dead-letters?user=1001")
		}
		if n := g.Number(`select count(*) from dead_letter_jobs`); n != int64(i+1) {
			t.Errorf("%s twice: %d jobs, want %d", path, n, i+1)
		}
	}
}

func TestStopAJob(t *testing.T) {
	g := consoletest.DeadLettered(t)
	operator := g.As(staff.Operator)
	operator.Post("/dead-letters/replay", nil).To("/dead-letters")
	operator.Get("/dead-letters/jobs/1/cancel").Is(200).Has("Stop this job?", "What is done so far is kept: 0 of 2.")
	operator.Post("/dead-letters/jobs/1/cancel", nil).To("/dead-letters")
	operator.Post("/dead-letters/jobs/1/cancel", nil).Is(http.StatusNotFound).Has("There is no such job, or it has ended.")
	operator.Get("/dead-letters/jobs/7/cancel").Is(http.StatusNotFound)
	g.Must(g.DeadLetters.Step(t.Context()))
	operator.Get("/dead-letters").Is(200).Has("Stopped", "2 failed messages")
}

func TestDeadLettersOfOtherShopsAreOutOfReach(t *testing.T) {
	g := consoletest.DeadLettered(t)
	g.Shop(11)
	g.As(staff.Operator).Post("/dead-letters/replay", nil).To("/dead-letters")
	foreign := g.As(staff.Operator, 11)
	foreign.Get("/dead-letters").Is(200).Has("No failed messages").HasNot("HTTP 503", "Replays and discards")
	foreign.Get("/dead-letters/list").Is(200).HasNot("Customer 1001")
	foreign.Get("/dead-letters/replay").Is(200).Has("0 still in time, 0 would be too late")
	foreign.Get("/dead-letters/jobs/1/cancel").Is(http.StatusNotFound)
	foreign.Post("/dead-letters/jobs/1/cancel", nil).Is(http.StatusNotFound)
	foreign.Post("/dead-letters/discard", nil).To("/dead-letters")
	foreign.Get("/dead-letters").Is(200).Has("Discard:") // their own job, on nothing
	g.As(staff.Operator, 10).Get("/dead-letters").Is(200).Has("2 failed messages")
}

// Finished jobs are shown below the dead letters that still need a decision.
func TestPastJobsStandBelowTheDeadLetters(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Operator)
	g.Exec(`insert into dead_letter_jobs (action, filter, state, created_by) values ('discard', '{}', 'finished', 'staff:1 x'), ('replay', '{}', 'running', 'staff:1 x')`)
	body := b.Get("/dead-letters").Is(200).Body
	running, results, past := strings.Index(body, `id="letter-jobs"`), strings.Index(body, `id="results"`), strings.Index(body, `id="past-jobs"`)
	if running < 0 || running > results || past < results {
		t.Errorf("running at %d, dead letters at %d, past at %d", running, results, past)
	}
}

// The pages show dead letters that wait for a decision, and no others.
func TestDiscardedLettersRaiseNoAlarm(t *testing.T) {
	g := consoletest.DeadLettered(t)
	viewer := g.As(staff.Viewer)
	const told = "2 reminders could not be delivered: refused permanently, or out of attempts."
	viewer.Get("/").Is(200).Has("2 reminders failed")
	viewer.Get("/templates/1").Is(200).Has(told)
	viewer.Get("/templates/1?tab=live").Is(200).Has(told)
	g.As(staff.Operator).Post("/dead-letters/discard", url.Values{"template": {"1"}, "reason": {"too late"}}).To("/dead-letters?template=1")
	g.Must(g.DeadLetters.Step(t.Context()))
	viewer.Get("/dead-letters?template=1").Is(200).Has("No matches")
	viewer.Get("/").Is(200).Has("All is well").HasNot("reminders failed")
	viewer.Get("/templates/1").Is(200).HasNot("could not be delivered")
	viewer.Get("/templates/1/balance").Is(200).Has("3 reserved = 1 sent + 0 skipped + 0 expired + 2 failed")
	viewer.Get("/templates/1?tab=live").Is(200).HasNot("could not be delivered")
}
