"""What every question uses: errors, checks, certificates, privacy, noise, weights, wording. It knows no question."""
