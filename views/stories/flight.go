package stories

import (
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/flight"
	"dropbell/domain/rehearsal"
	droppages "dropbell/views/pages/drops"
)

// flightPages are flight checks of drops.
func flightPages() []Story {
	t := coupon(1, "Moon cake night", 3*time.Hour)
	lane := flight.Lane{Slot: 2, Channel: delivery.Email, DueAt: t.OpensAt.Add(-10 * time.Minute), FinishAt: t.OpensAt.Add(-10*time.Minute + 17*time.Second), Booked: 4000, Messages: 3500, HeldOut: 400, NoContact: 100}
	late := lane
	late.Channel, late.Missed, late.FinishAt = delivery.SMS, 312, t.OpensAt
	check := flight.Check{TemplateID: 1, Version: 1, At: Now(), Lanes: []flight.Lane{lane, late}, Findings: []flight.Finding{
		{Point: flight.Users, Level: flight.Green, Found: "reserved reminders: 8,000; to be sent: 7,000; without a contact or opted out: 200; held out: 800"},
		{Point: flight.Providers, Level: flight.Red, Found: "messages by SMS: 3,500, of which 312 would miss the opening at 20 a second", Do: "raise the provider's quota or the rate of the channel to 24 a second, or add a provider"},
		{Point: flight.Links, Level: flight.Amber, Found: "a link does not answer: https://shop.example/moon", Do: "open the address in a browser: this server may not be allowed to reach it"}}}
	ready := check
	ready.Findings, ready.Lanes = check.Findings[:1], nil
	done := rehearsal.Rehearsal{ID: 129, TemplateID: 1, State: rehearsal.Done, EndedAt: ptr(Now().Add(-time.Hour)), SharePermille: 100, Report: &rehearsal.Report{Users: 500, SharePermille: 100, Reminders: 6000, Sent: 5900, Dead: 100,
		LateP50: 150, LateP99: 900, Wave: 64_000, Forecast: 61_000, Claims: 500, Rate: 150, Expected: 1500, Rehearsed: 1500, Issued: 100, Stock: 100, SoldOut: 1000, ExpectedSoldOut: 700, Twice: 62, ClaimP50: 3, ClaimP99: 60, Bottleneck: rehearsal.NoBottleneck,
		Parts: []rehearsal.Part{{Kind: rehearsal.OfDoor, Name: "Club members", Came: 100, Got: 40}, {Kind: rehearsal.OfDoor, Name: "Everybody", Came: 400, Got: 60},
			{Kind: rehearsal.OfPass, Came: 25, Refused: 25, Took: 14}, {Kind: rehearsal.OfGate, Came: 100, Got: 100, Took: 240}, {Kind: rehearsal.OfWaitlist, Came: 50, Got: 5, Back: 5, Took: 1900},
			{Kind: rehearsal.OfEarly, Came: 1200, Got: 1198}}}}
	drawn := *done.Report
	drawn.Parts = []rehearsal.Part{{Kind: rehearsal.OfDraw, Came: 500, Got: 100, Took: 2300}, {Kind: rehearsal.OfStrangers, Came: 25, Refused: 25},
		{Kind: rehearsal.OfResult, Came: 500, Got: 500}}
	draw := done
	draw.ID, draw.Report = 257, &drawn
	running := rehearsal.Rehearsal{ID: 193, TemplateID: 1, State: rehearsal.Running, OpensAt: ptr(Now().Add(time.Minute)), Progress: rehearsal.Progress{Step: rehearsal.Reminding, Fired: 3, Slots: 12, Sent: 2100, Due: 6000}}
	rushing := running
	rushing.Progress = rehearsal.Progress{Step: rehearsal.Rushing, Fired: 12, Slots: 12, Came: 320, Comers: 500, Claims: 351}
	failed := rehearsal.Rehearsal{ID: 65, TemplateID: 1, State: rehearsal.Failed, Detail: rehearsal.Interrupted}
	return []Story{
		{Name: "rehearsal/first", Page: droppages.Rehearsals{Template: t}.Page()},
		{Name: "rehearsal/running", Page: droppages.Rehearsals{Template: t, List: []rehearsal.Rehearsal{running, done}}.Page()},
		{Name: "rehearsal/done", Page: droppages.Rehearsals{Template: t, List: []rehearsal.Rehearsal{done, failed}, Evening: rehearsal.Evening{Wave: 66_000, SoldOut: 2000}}.Page()},
		{Name: "rehearsal/draw", Page: droppages.Rehearsals{Template: t, List: []rehearsal.Rehearsal{rushing, draw}}.Page()},
		{Name: "flight/red", Page: droppages.Flight{Template: t, Check: check}.Page()},
		{Name: "flight/green", Page: droppages.Flight{Template: t, Check: ready}.Page()},
	}
}
