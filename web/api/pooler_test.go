package api_test

import "testing"

// TestThroughATransactionPooler runs tests of the operations with PgBouncer
// between the server and its database, and two sessions for all of them.
func TestThroughATransactionPooler(t *testing.T) {
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Reserve", TestReserve}, {"Cancel", TestCancel}, {"Claim", TestClaim}, {"ClaimAgain", TestClaimAgain}, {"Redeem", TestRedeem},
		{"OneCodeManyUsers", TestOneCodeManyUsers}, {"Payment", TestPayment}, {"Coupons", TestCoupons}, {"IdempotencyRace", TestIdempotencyRace},
		{"Grants", TestGrants}, {"CampaignFromDraftToInbox", TestCampaignFromDraftToInbox}, {"Segments", TestSegments}, {"Lists", TestLists},
		{"ImportUsers", TestImportUsers}, {"EraseUser", TestEraseUser}, {"Explain", TestExplain}, {"DeadLetters", TestDeadLetters},
	} {
		t.Run(test.name, test.run)
	}
}
