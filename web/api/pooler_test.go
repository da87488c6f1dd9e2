package api_test

import "testing"

// TestThroughATransactionPooler runs tests of the operations with PgBouncer between the server and
// its database. PgBouncer has two sessions for all of them.
func TestThroughATransactionPooler(t *testing.T) {
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Reserve", testReserve}, {"Cancel", testCancel}, {"Claim", testClaim}, {"ClaimAgain", TestClaimAgain}, {"Redeem", testRedeem},
		{"OneCodeManyUsers", TestOneCodeManyUsers}, {"Payment", testPayment}, {"Coupons", testCoupons}, {"IdempotencyRace", TestIdempotencyRace},
		{"Grants", testGrants}, {"CampaignFromDraftToInbox", testCampaignFromDraftToInbox}, {"Segments", testSegments}, {"Lists", testLists},
		{"ImportUsers", testImportUsers}, {"EraseUser", testEraseUser}, {"Explain", testExplain}, {"DeadLetters", testDeadLetters},
	} {
		t.Run(test.name, test.run)
	}
}
