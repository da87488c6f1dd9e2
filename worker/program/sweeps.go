package program

import (
	"dropbell/adapters/postgres"
	accessdb "dropbell/adapters/postgres/access"
	audiencedb "dropbell/adapters/postgres/audience"
	campaignsdb "dropbell/adapters/postgres/campaigns"
	couponsdb "dropbell/adapters/postgres/coupons"
	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	workdb "dropbell/adapters/postgres/work"
)

// sweepsWait are the questions of each sweep. A sweep has something to do if one of its
// questions is answered with yes.
var sweepsWait = map[string][]postgres.Question{
	"sweep":            {dropsdb.SlotsWait, dropsdb.AnnouncementsWait, deliverydb.BatchesWait, campaignsdb.CampaignsWait, dropsdb.TemplatesWait},
	"recipes":          {campaignsdb.RecipesWait},
	"doors":            {audiencedb.DoorsWait, audiencedb.DoorSharesWait},
	"draws":            {dropsdb.DrawsWait},
	"series":           {dropsdb.SeriesWait},
	"test messages":    {deliverydb.ChannelTestsWait},
	"phone codes":      {audiencedb.VerificationsWait},
	"coupons":          {couponsdb.CouponsWait},
	"notices":          {couponsdb.NoticesWait},
	"waitlists":        {couponsdb.WaitlistsWait},
	"reviews":          {couponsdb.ReviewsWait},
	"alert deliveries": {workdb.AlertDeliveriesWait},
	"alert pushes":     {workdb.AlertPushesWait},
	"password mails":   {accessdb.PasswordMailsWait},
	"early receipts":   {deliverydb.EarlyReceiptsWait},
	"gate keeper":      {couponsdb.GatesWait},
	"jobs":             {workdb.JobsWait},
	"dead letters":     {deliverydb.DeadLetterJobsWait},
}
