// carriers
