"""What users fit: estimators in the manner of scikit-learn."""
